#!lua
-- Give up a shard, so that another may own it at once, and say which id times were really used.
--
-- The owner had raised the id mark to what it might use; now it is lowered to what it did use, never below where its grant
-- began: so the next owner need not make ids of the future.
--
-- KEYS @lanes
--   leader
-- ARGV
--   holder         string  who resigns
--   epoch          string  the epoch it owns the shard under
--   high_water_ms  int     the largest id time that it has used, Unix ms; 0: none
-- REPLY
--   RESIGNED     the shard is free
--   NOT_LEADING  it was not `holder`'s under this epoch
-- FLAGS idempotent

-- @include int
-- @include lease_drop

if not lease_drop(keys.leader, args.holder, args.epoch) then
  return { 'NOT_LEADING' }
end
local from = tonumber(redis.call('HGET', keys.leader, 'ids_from_ms'))
redis.call('HSET', keys.leader, 'high_water_ms', int(math.max(from, args.high_water_ms)), 'address', '', 'server', '',
  'status', '')
return { 'RESIGNED' }
