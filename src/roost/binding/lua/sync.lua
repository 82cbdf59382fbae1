#!lua
-- The leader writes which lives of servers of a type there are, and which of them take new users, as discovery says.
--
-- It counts up its news for as long as its process lives, and has one under way at a time: older news than was taken in
-- this tenure is ignored. A new life of a server ends the one before it. With `full` these are all servers of the type: one
-- that is not named takes nobody, and is told back; it is ended only by name. A life that has ended does not return.
--
-- KEYS @binding
--   leader partition servers binders ranking buried orphans
-- ARGV
--   holder       string  who leads
--   epoch        string  under which it leads
--   type         string  service type
--   number       int     of this news
--   full         int     1: these are all servers
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
--   rows...      string  server id, life, and 1 (takes new users), 0 (does not) or - (has ended), in turn; bound: the instances of a service
-- REPLY
--   SYNCED remaining:int absent:[string]   users of ended lives that are still to be placed; id and life of those known that `full` did not name
--   STALE                                  later news was taken
--   DEPOSED                                somebody else leads, or nobody
-- FLAGS idempotent bulk

-- @include int
-- @include leads
-- @include partition_clock
-- @include life_end
-- @include life_ended
-- @include life_show
-- @include server_row

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
local ctx = partition_clock(keys, args.now, args.max_step_ms)
local epoch, number = string.match(redis.call('HGET', keys.partition, 'news:' .. args.type) or '', '^(%d+):(%d+)$')
if epoch == args.epoch and tonumber(number) > args.number then
  return { 'STALE' }
end

local named, remaining = {}, 0
for at = 1, #args.rows, 3 do
  local id, life, state = args.rows[at], args.rows[at + 1], args.rows[at + 2]
  named[id] = true
  if state == '-' then
    remaining = remaining + life_end(keys, ctx, args.type, id, life)
  elseif not life_ended(keys, args.type, id, life) then
    life_show(keys, ctx, args.type, id, life, state)
  end
end

local absent = {}
if args.full == 1 then
  for _, id in ipairs(redis.call('ZRANGE', keys.ranking .. args.type, 0, -1)) do
    local row = not named[id] and server_row(keys, args.type, id)
    if row then
      life_show(keys, ctx, args.type, id, row.life, '0')
      absent[#absent + 1] = id
      absent[#absent + 1] = row.life
    end
  end
end
redis.call('HSET', keys.partition, 'news:' .. args.type, args.epoch .. ':' .. int(args.number))
return { 'SYNCED', remaining, absent }
