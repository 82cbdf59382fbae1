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
-- KEYS @waitingroom
--   world servers people inside ended asking
-- ARGV
--   server  string  server id
--   life    string  its life in discovery
--   number  string  of this report, growing in a life
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

local id, life, number = args.server, args.life, args.number
local cap, n, k, url = args.cap, args.n, args.k, args.url
local now = now_us(args.now)

world_open(keys, now)
local was = server_record(keys, id)
if was and tonumber(was.life) > tonumber(life) then
  return { 'FENCED', was.life }
end
local lives = redis.call('SMEMBERS', keys.ended .. id)
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
  if redis.call('EXISTS', keys.inside .. id .. ':' .. former) == 1 then
    life_end(keys, id, former, 'crash', 100)
  end
end
if was and was.life == life and tonumber(number) <= tonumber(was.number) then
  return { 'STALE' }
end
local c = was and was.life == life and was.c or k
if k > c then
  c = k
  redis.call('HINCRBY', keys.world, 'lost_writes', 1)
  local rows = redis.call('HGETALL', keys.servers)
  for at = 1, #rows, 2 do
    local other, row = rows[at], server_record(keys, rows[at])
    if other ~= id and row.doubt == 0 then
      local doubted = server_record(keys, other)
      doubted.doubt = 1
      server_keep(keys, other, row, doubted)
    end
  end
end
if was and was.life == life and n > was.n + was.c - was.k then
  redis.call('HINCRBY', keys.world, 'drift', n - was.n - was.c + was.k)
end
server_keep(keys, id, was, { life = life, cap = cap, n = n, k = k, c = c, number = number, doubt = 0, url = url })
local asking = {}
for _, user in ipairs(redis.call('SPOP', keys.asking .. id .. ':' .. life, 100)) do
  local person = redis.call('HMGET', keys.people .. user, 'state', 'server', 'life', 'conn')
  if person[1] == 'inside' and person[2] == id and person[3] == life then
    asking[#asking + 1] = user
    asking[#asking + 1] = person[4]
  end
end
return { 'REPORTED', c, asking }
