#!lua
-- Own a shard: renew the lease that `holder` has under `epoch`, or take it if it is free or over; like `leader_campaign`.
--
-- An epoch is also larger than that of every entry of the log: the ids of the entries are the fence. The id mark is the largest
-- time that any id of the shard may bear. The owner raises it before it uses such ids, and a call never lowers it. The
-- mark that is answered is the one at which the grant began: ids of this owner lie above it, however often it asks.
--
-- KEYS @lanes
--   leader log
-- ARGV
--   holder         string  who asks
--   epoch          string  the last epoch that it owned the shard under; empty if it never did
--   ttl_ms         int     life of the lease without renewal, in lease time
--   max_step_ms    int     the most that this look may add to the lease clock
--   address        string  host:port at which the owner takes commands
--   server         string  its server id
--   status         string  how the shard is doing, JSON, for those who look
--   high_water_ms  int     the largest id time that it may use before the next renewal, Unix ms
--   now            int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEADING epoch:int now_us:int high_water_ms:int                  it owns the shard; the store's time; where its ids begin
--   HELD holder:string epoch:int address:string server:string       somebody else does
-- FLAGS idempotent

-- @include now_us
-- @include int
-- @include lease_clock
-- @include lease_renew
-- @include lease_take
-- @include log_epoch

local holder, epoch, ttl_ms = args.holder, args.epoch, args.ttl_ms
local now = now_us(args.now)
local clock = lease_clock(keys.leader, now, args.max_step_ms)
if not lease_renew(keys.leader, holder, epoch, ttl_ms, clock) then
  epoch = lease_take(keys.leader, holder, tonumber(epoch) or 0, ttl_ms, clock, now)
  if epoch then
    local logged = tonumber(log_epoch(keys))
    if tonumber(epoch) <= logged then
      epoch = int(logged + 1)
    end
    local mark = redis.call('HGET', keys.leader, 'high_water_ms') or '0'
    redis.call('HSET', keys.leader, 'epoch', epoch, 'ids_from_ms', mark)
  end
end
local kept = redis.call('HMGET', keys.leader, 'holder', 'epoch', 'address', 'server', 'high_water_ms', 'ids_from_ms')
if kept[1] ~= holder then
  return { 'HELD', kept[1], kept[2], kept[3], kept[4] }
end
lease_renew(keys.leader, holder, kept[2], ttl_ms, clock)
redis.call('HSET', keys.leader, 'address', args.address, 'server', args.server, 'status', args.status,
  'high_water_ms', int(math.max(tonumber(kept[5] or '0'), args.high_water_ms)))
return { 'LEADING', kept[2], int(now), kept[6] }
