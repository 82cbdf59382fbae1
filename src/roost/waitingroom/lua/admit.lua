#!lua
-- One tick of a world: time passes, what has ended is taken back, and tickets go to the heads of the lines.
--
-- The budget is computed here, where it is spent: a tick that is repeated, doubled or run by two leaders finds no
-- room and issues nothing. Heads that are late for the call they were told to make are put aside, keep their
-- place, and block nobody. The lines take turns by their weights; a weight of 0 has absolute priority.
--
-- KEYS @waitingroom
--   world servers offers grace feed bell waiting away people granted
-- ARGV
--   epoch         int     of the leader; an older one than was seen is refused
--   max_step_ms   int     the most that this look may add to the lease clock
--   ticket_ms     int     how long a ticket lasts
--   late_ms       int     how much later than told a call may come
--   gone_ms       int     how late a call may come before the place is lost
--   forfeit       int     no-shows that cost the place; 0: none does
--   expire_limit  int     bound: tickets and held places taken back in one tick
--   scan_limit    int     bound: people scanned in one line
--   lines         string  line and weight of every class: `:vip=1 =3`
--   now           int     test override of the server's clock in µs; empty outside tests
--   tids...       string  ids for the tickets; bound: at most so many are issued
-- REPLY
--   TICKED issued:int expired:int gone:int waiting:int room:int more:int   what was done; how many wait; how many more could enter; whether heads were left unseen
--   DEPOSED epoch:int                                                      another leader has ticked since

-- @include now_us
-- @include lease_clock
-- @include world_open
-- @include world_expire
-- @include world_room
-- @include line_heads
-- @include line_sweep
-- @include lines_issue
-- @include line_pace
-- @include world_audit

local fence = tonumber(redis.call('HGET', keys.world, 'fence') or '0')
if args.epoch < fence then
  return { 'DEPOSED', fence }
end
redis.call('HSET', keys.world, 'fence', args.epoch)
local ctx = world_open(keys, now_us(args.now))
ctx.clock = lease_clock(keys.world, ctx.now, args.max_step_ms)
ctx.ticket_ms, ctx.late_ms, ctx.gone_ms, ctx.forfeit = args.ticket_ms, args.late_ms, args.gone_ms, args.forfeit
ctx.expire_limit, ctx.scan_limit = args.expire_limit, args.scan_limit

local expired = world_expire(keys, ctx)
local room, free, capacity = world_room(keys, ctx)
ctx.capacity = capacity
local wanted = math.min(room, #args.tids)
local lines, weights, gone, more = {}, 0, 0, 0
for suffix, weight in string.gmatch(args.lines, '([^ =]*)=(%d+)') do
  local heads, unseen = line_heads(keys, ctx, suffix, wanted)
  local credit = tonumber(redis.call('HGET', keys.world, 'credit' .. suffix) or '0')
  lines[#lines + 1] = { suffix = suffix, weight = tonumber(weight), heads = heads, at = 1, issued = 0, credit = credit }
  weights = weights + weight
  gone = gone + line_sweep(keys, ctx, suffix, math.ceil(ctx.scan_limit / 4))
  more = math.max(more, unseen)
end

local issued = lines_issue(keys, ctx, lines, wanted, math.min(free, #args.tids), args.tids)
local length = 0
for _, line in ipairs(lines) do
  redis.call('HSET', keys.world, 'credit' .. line.suffix, math.max(-weights, math.min(weights, line.credit)))
  line_pace(keys, ctx, line.suffix, line.issued)
  length = length + redis.call('ZCARD', keys.waiting .. line.suffix)
end
world_audit(keys, issued)
return { 'TICKED', issued, expired, gone, length, room - issued, more }
