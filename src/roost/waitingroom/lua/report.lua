#!lua
-- A game server says how many people are on it: n, and that these are all whom it let in up to its k-th consume.
--
-- Reports may be late, doubled or in any order: an older one than the last is not taken, and whatever is taken gives
-- an upper bound of the people inside. A server that counts more consumes than the store knows proves that the
-- store lost writes: then nobody is admitted until every server has reported again. The answer names people who are
-- inside by what the store knows and ask to come in: the server releases those whom it does not have.
--
-- Whoever a former life had let in is out, also if nobody saw its end: every report sees to some of them.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   servers   hash     server id → its row in the ledger
--   people*   hash     per user: state and what else is known
--   inside*   set      per server: lives that have ended; per server and life: users who are inside and ask to come in
-- ARGV
--   server  string  server id
--   life    string  its life in discovery
--   number  int     of this report, growing in a life
--   cap     int     people it can take
--   n       int     people on it
--   k       int     the last consume that n counts
--   url     string  where players connect
--   now     int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPORTED consumed:int asking:[string]   taken; the last consume that the store knows; user and connection in turn, at most 100 people
--   STALE                                   a later report of this life was taken
--   FENCED life:int                         a later life of this server has reported, or this one or a later one has ended
-- FLAGS idempotent

-- @include now_us
-- @include world_open
-- @include server_record
-- @include server_keep
-- @include life_end

local world, servers, people, inside = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, life, number = ARGV[1], ARGV[2], ARGV[3]
local cap, n, k, url = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local now = now_us(ARGV[8])

world_open(world, now)
local was = server_record(servers, id)
if was and tonumber(was.life) > tonumber(life) then
  return { 'FENCED', was.life }
end
local lives = redis.call('SMEMBERS', inside .. id .. ':ended')
for _, former in ipairs(lives) do
  -- `<n` is a life that was in the ledger: whatever is older has ended too. Others may be of another type of server.
  local counted = tonumber(string.match(former, '^<(%d+)$'))
  if former == life or (counted and tonumber(life) <= counted) then
    return { 'FENCED', counted or life }
  end
end
if was and was.life ~= life then
  lives[#lives + 1] = was.life
end
for _, former in ipairs(lives) do
  if redis.call('EXISTS', inside .. id .. ':' .. former) == 1 then
    life_end(people, inside, id, former, 'crash', 100)
  end
end
if was and was.life == life and tonumber(number) <= tonumber(was.number) then
  return { 'STALE' }
end
local c = was and was.life == life and was.c or k
if k > c then
  c = k
  redis.call('HINCRBY', world, 'lost_writes', 1)
  local rows = redis.call('HGETALL', servers)
  for at = 1, #rows, 2 do
    local other, row = rows[at], server_record(servers, rows[at])
    if other ~= id and row.doubt == 0 then
      local doubted = server_record(servers, other)
      doubted.doubt = 1
      server_keep(world, servers, other, row, doubted)
    end
  end
end
if was and was.life == life and n > was.n + was.c - was.k then
  redis.call('HINCRBY', world, 'drift', n - was.n - was.c + was.k)
end
server_keep(world, servers, id, was,
  { life = life, cap = cap, n = n, k = k, c = c, number = number, doubt = 0, url = url })
local asking = {}
for _, user in ipairs(redis.call('SPOP', inside .. id .. ':' .. life .. ':asking', 100)) do
  local person = redis.call('HMGET', people .. user, 'state', 'server', 'life', 'conn')
  if person[1] == 'inside' and person[2] == id and person[3] == life then
    asking[#asking + 1] = user
    asking[#asking + 1] = person[4]
  end
end
return { 'REPORTED', c, asking }
