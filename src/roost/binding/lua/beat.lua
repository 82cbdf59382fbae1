#!lua
-- An entity server is alive: its lease in this partition goes on, with its capacity and version, and its owner's word on
-- which of its users were there lately.
--
-- Beats alone open nothing: which life takes new users is what the leader writes. A life that it has not named yet holds a
-- lease (so that after a store that forgot everything owners keep their users), unless another life is there.
--
-- KEYS @binding
--   partition servers binders ranking seen buried
-- ARGV
--   type         string  service type
--   server       string  server id
--   life         string  of the server
--   capacity     int     users that it takes; 0: no limit
--   version      string  of its program
--   ttl_ms       int     how long it is alive without another beat, in lease time
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
--   active...    string  its users that were there since it last said so; bound: 1000
-- REPLY
--   BEATEN ttl_ms:int   alive for so long
--   UNKNOWN             the leader has not named this life: no new users
--   ENDED               this life is over for good
-- FLAGS idempotent

-- @include partition_clock
-- @include server_row
-- @include server_keep
-- @include life_ended

local ctx = partition_clock(keys, args.now, args.max_step_ms)
if life_ended(keys, args.type, args.server, args.life) then
  return { 'ENDED' }
end
local row = server_row(keys, args.type, args.server)
if row and row.life ~= args.life then
  if row.open ~= '?' or row.lease > ctx.clock then
    return { 'UNKNOWN' }
  end
  row = nil
end
row = row or { life = args.life, open = '?', lease = 0, first = ctx.clock }
row.capacity, row.version, row.lease = args.capacity, args.version, math.max(row.lease, ctx.clock + args.ttl_ms)
server_keep(keys, ctx, args.type, args.server, row)
for _, user in ipairs(args.active) do
  if redis.call('ZSCORE', keys.binders .. args.type .. ':' .. args.server .. ':' .. args.life, user) then
    redis.call('ZADD', keys.seen .. args.type, ctx.clock, user)
  end
end
if row.open == '?' then
  return { 'UNKNOWN' }
end
return { 'BEATEN', args.ttl_ms }
