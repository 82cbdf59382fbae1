#!lua
-- A look of the leader: lease time passes, and bindings that nobody has used for long are released.
--
-- The tick names the news that the leader wrote last, by type: a partition that holds another lost it in a failover, and
-- the leader writes all of it anew.
--
-- KEYS @binding
--   leader partition users servers binders ranking seen orphans feed bell
-- ARGV
--   holder       string  who leads
--   epoch        string  under which it leads
--   type         string  service type
--   news         string  epoch and number of the news that it wrote last, see `sync`
--   idle_ms      int     lease time after which a binding that nobody used is released; 0: never
--   count        int     bound: bindings that are looked at
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   TICKED clock:int idle:int orphans:[string]   lease time; how many were released; lives that ended and may still hold users
--   NEWS_LOST                                    the partition holds other news of the servers
--   DEPOSED                                      somebody else leads, or nobody

-- @include leads
-- @include partition_clock
-- @include record_read
-- @include grant

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
if redis.call('HGET', keys.partition, 'news:' .. args.type) ~= args.news then
  return { 'NEWS_LOST' }
end
local ctx = partition_clock(keys, args.now, args.max_step_ms)
local idle = 0
if args.idle_ms > 0 then
  local before = ctx.clock - args.idle_ms
  for _, user in ipairs(redis.call('ZRANGEBYSCORE', keys.seen .. args.type, '-inf', before, 'LIMIT', 0, args.count)) do
    local record = record_read(keys, args.type, user)
    if record.st == 'A' then
      grant(keys, ctx, record, '', '', record.e, 'idle')
      idle = idle + 1
    else
      redis.call('ZREM', keys.seen .. args.type, user)
    end
  end
end
return { 'TICKED', ctx.clock, idle, redis.call('SRANDMEMBER', keys.orphans, 16) }
