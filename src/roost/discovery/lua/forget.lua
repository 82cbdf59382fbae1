#!lua
-- Forget tombstones that are older than `keep_ms`: whoever beats that late may register again.
--
-- With the tombstone goes an order that was kept under the instance id: nobody can come back to it.
--
-- KEYS @discovery
--   gone overrides
-- ARGV
--   cursor   string  where the last part ended; 0 at first
--   count    int     bound: about how many are looked at
--   keep_ms  int     how long a tombstone stays
--   now      int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   FORGOTTEN cursor:string count:int  where to go on, and how many were dropped
-- FLAGS idempotent

-- @include now_us

local cursor, count, keep_ms = args.cursor, args.count, args.keep_ms
local now = now_us(args.now)

local forgotten = 0
local part = redis.call('HSCAN', keys.gone, cursor, 'COUNT', count)
for at = 1, #part[2], 2 do
  local at_ms = string.match(part[2][at + 1], '^[^\t]+\t%d+\t(%d+)')
  if not at_ms or now / 1000 - at_ms > keep_ms then
    forgotten = forgotten + redis.call('HDEL', keys.gone, part[2][at])
    redis.call('HDEL', keys.overrides, part[2][at])
  end
end
return { 'FORGOTTEN', part[1], forgotten }
