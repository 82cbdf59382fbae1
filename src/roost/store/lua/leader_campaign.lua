#!lua
-- Lead a scope: renew the leadership that `holder` has under `epoch`, or take it if it is free or over.
--
-- Each call is also a look at the lease clock, so leadership passes on only while somebody asks for it.
-- A repeated call gives the same answer: the owner that asks again is still the owner. Every grant has a new epoch, and
-- whatever the leader writes is taken only while holder and epoch are those of the present grant, see `leads`.
--
-- KEYS
--   leader       hash    who leads, under which epoch, until when, and the lease clock
-- ARGV
--   holder       string  who asks
--   epoch        string  the last epoch that it led under; empty if it never did
--   ttl_ms       int     life of the leadership without renewal, in lease time
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEADING epoch:int                 `holder` leads under this epoch: its fencing token
--   HELD holder:string epoch:int      somebody else leads
-- FLAGS idempotent

-- @include now_us
-- @include lease_clock
-- @include lease_renew
-- @include lease_take

local holder, epoch = args.holder, args.epoch
local ttl_ms, max_step_ms = args.ttl_ms, args.max_step_ms
local now = now_us(args.now)

local clock = lease_clock(keys.leader, now, max_step_ms)
if lease_renew(keys.leader, holder, epoch, ttl_ms, clock) then
  return { 'LEADING', epoch }
end
local taken = lease_take(keys.leader, holder, tonumber(epoch) or 0, ttl_ms, clock, now)
if taken then
  return { 'LEADING', taken }
end
local kept = redis.call('HMGET', keys.leader, 'holder', 'epoch')
if kept[1] == holder then
  lease_renew(keys.leader, holder, kept[2], ttl_ms, clock)
  return { 'LEADING', kept[2] }
end
return { 'HELD', kept[1], kept[2] }
