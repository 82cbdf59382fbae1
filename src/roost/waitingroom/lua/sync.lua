#!lua
-- The leader writes which lives of servers there are, and which of them take new users, as discovery says.
--
-- It counts up its news for as long as its process lives, and has one under way at a time: older news than was taken in
-- this tenure is ignored. A new life of a server ends the one before it, and counts what it has reported so far. With
-- `full` these are all servers: one that is not named takes nobody, and is told back; it is ended only by name.
-- A life that has ended does not return.
--
-- KEYS @waitingroom
--   leader world servers known pending pending_at people inside ended
-- ARGV
--   holder   string  who leads
--   epoch    string  under which it leads
--   number   int     of this news
--   full     int     1: these are all servers
--   count    int     bound: people let out of all lives that ended; of one that was replaced, reports let out the others
--   now      int     test override of the server's clock in µs; empty outside tests
--   rows...  string  server id, life, and 1 (takes new users), 0 (does not) or - (has ended), in turn; bound: the instances of a service
-- REPLY
--   SYNCED remaining:int absent:[string]   people of ended lives still to be let out; id and life of those known that `full` did not name
--   STALE                                  later news was taken
--   DEPOSED                                somebody else leads, or nobody
-- FLAGS idempotent bulk

-- @include now_us
-- @include int
-- @include leads
-- @include world_open
-- @include server_end
-- @include server_known
-- @include server_show
-- @include life_ended

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
local now = now_us(args.now)
world_open(keys, now)
local epoch, number = string.match(redis.call('HGET', keys.world, 'news') or '', '^(%d+):(%d+)$')
if epoch == args.epoch and tonumber(number) > args.number then
  return { 'STALE' }
end

local named, remaining, budget = {}, 0, args.count
local function ends(id, life)
  local people, let_out = server_end(keys, now, id, life, budget)
  budget = budget - let_out
  return people
end
for at = 1, #args.rows, 3 do
  local id, life, state = args.rows[at], args.rows[at + 1], args.rows[at + 2]
  named[id] = true
  if state == '-' then
    remaining = remaining + ends(id, life)
  elseif not life_ended(keys, id, life) then
    local known = server_known(keys, id)
    if known and known ~= life then
      ends(id, known)
    end
    server_show(keys, now, id, life, tonumber(state))
  end
end

local absent = {}
if args.full == 1 then
  for _, id in ipairs(redis.call('HKEYS', keys.known)) do
    if not named[id] then
      local life = server_known(keys, id)
      server_show(keys, now, id, life, 0)
      absent[#absent + 1] = id
      absent[#absent + 1] = life
    end
  end
end
redis.call('HSET', keys.world, 'news', args.epoch .. ':' .. int(args.number))
return { 'SYNCED', remaining, absent }
