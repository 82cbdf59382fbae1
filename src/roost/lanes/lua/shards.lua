#!lua flags=no-writes
-- Who owns a shard and how it is doing, for those who look: it lets no lease time pass.
--
-- KEYS @lanes
--   leader
-- ARGV
--   max_step_ms  int  the most that a look adds to the lease clock
--   now          int  test override of the server's clock in µs; empty outside tests
-- REPLY
--   SHARD holder:string epoch:int address:string server:string status:string left_ms:int   nobody: holder is empty; 0 left: it may be taken
-- FLAGS idempotent

-- @include int
-- @include now_us

local kept = redis.call('HMGET', keys.leader, 'holder', 'epoch', 'address', 'server', 'status', 'until_ms', 'clock_ms',
  'last_advance_us')
local passed = math.floor((now_us(args.now) - tonumber(kept[8] or '0')) / 1000)
passed = math.max(0, math.min(passed, args.max_step_ms))
local left = tonumber(kept[6] or '0') - tonumber(kept[7] or '0') - passed
return { 'SHARD', kept[1] or '', kept[2] or '0', kept[3] or '', kept[4] or '', kept[5] or '', int(math.max(0, left)) }
