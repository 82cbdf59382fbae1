#!lua
-- Place users of a life that has ended, a few at a time; the leader calls it at a bounded rate. Whoever nobody takes stays, and
-- is placed on their next request.
--
-- KEYS @binding
--   leader partition users servers binders ranking seen orphans feed bell
-- ARGV
--   holder       string  who leads
--   epoch        string  under which it leads
--   type         string  service type
--   server       string  server id
--   life         string  that has ended
--   version      string  that the server must have; empty: any
--   count        int     bound: users that are looked at
--   draw         int     random, 0 to 2^48: picks the servers that are compared
--   slow_ms      int     how long a server is new
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPLACED placed:int remaining:int   how many have a new home; how many are still there
--   DEPOSED                             somebody else leads, or nobody

-- @include leads
-- @include partition_clock
-- @include record_read
-- @include place

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
local ctx = partition_clock(keys, args.now, args.max_step_ms)
ctx.draw, ctx.slow_ms = args.draw, args.slow_ms
local binders = keys.binders .. args.type .. ':' .. args.server .. ':' .. args.life
local placed = 0
for _, user in ipairs(redis.call('ZRANGE', binders, 0, args.count - 1)) do
  local record = record_read(keys, args.type, user)
  local is_held = record.s == args.server and record.l == args.life
  local is_expected = record.d == args.server and record.dl == args.life
  if not is_held and not is_expected then
    redis.call('ZREM', binders, user)
  elseif is_held and not (record.st == 'M' and record.dt > ctx.clock) then
    if not place(keys, ctx, record, args.version, 0, 'failover') then
      break
    end
    placed = placed + 1
    ctx.draw = (ctx.draw * 31 + 17) % 281474976710656
  end
end
local remaining = redis.call('ZCARD', binders)
if remaining == 0 then
  redis.call('SREM', keys.orphans, args.type .. ':' .. args.server .. ':' .. args.life)
end
return { 'REPLACED', placed, remaining }
