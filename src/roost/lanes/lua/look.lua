#!lua
-- Look at a shard that another server should own, so that its lease can come to its end: lease time runs only while somebody looks.
--
-- KEYS @lanes
--   leader
-- ARGV
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   SEEN holder:string epoch:int address:string server:string left_ms:int  who has it, and for how long; 0: it may be taken

-- @include now_us
-- @include int
-- @include lease_clock

local clock = lease_clock(keys.leader, now_us(args.now), args.max_step_ms)
local kept = redis.call('HMGET', keys.leader, 'holder', 'epoch', 'address', 'server', 'until_ms')
local left = kept[1] and kept[1] ~= '' and tonumber(kept[5]) - clock or 0
return { 'SEEN', kept[1] or '', kept[2] or '0', kept[3] or '', kept[4] or '', int(math.max(0, left)) }
