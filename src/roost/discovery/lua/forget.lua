#!lua
-- Forget tombstones that are older than `keep_ms` of lease time: an instance that beats that late may register again.
-- Lease time runs only while somebody looks, so that a step of the server's clock forgets nobody.
--
-- With the tombstone goes an override that was kept under the instance id: nobody can come back to it.
--
-- KEYS @discovery
--   meta gone overrides
-- ARGV
--   cursor   string  where the last part ended; 0 at first
--   count    int     bound: about how many are looked at
--   keep_ms  int     how long a tombstone stays
--   now      int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   FORGOTTEN cursor:string count:int  where to go on, and how many were dropped
-- FLAGS idempotent

-- @include now_us
-- @include tombstone_unpack

local now, clock = now_us(args.now), tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')

local forgotten = 0
local part = redis.call('HSCAN', keys.gone, args.cursor, 'COUNT', args.count)
for at = 1, #part[2], 2 do
  local id, tombstone = part[2][at], tombstone_unpack(part[2][at + 1])
  local age_ms = tombstone and (tombstone.clock_ms and clock - tombstone.clock_ms or now / 1000 - tonumber(tombstone.at_ms))
  if not tombstone or age_ms > args.keep_ms then
    forgotten = forgotten + redis.call('HDEL', keys.gone, id)
    redis.call('HDEL', keys.overrides, id)
  end
end
return { 'FORGOTTEN', part[1], forgotten }
