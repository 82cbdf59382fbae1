#!lua
-- One tick of a world: time passes, what has ended is taken back, and tickets go to the heads of the lines.
--
-- The budget is computed here, where it is spent: a tick that is repeated, doubled or run by two leaders finds no
-- room and issues nothing. Heads that are late for the call they were told to make are put aside, keep their
-- place, and block nobody. The lines take turns by their weights; a weight of 0 has absolute priority. While no gateway
-- signs, time stands still and nothing is issued.
--
-- The tick names the news that the leader wrote last: a ledger that holds another lost it in a failover, and the leader
-- writes all of it anew.
--
-- KEYS @waitingroom
--   leader world servers pending pending_at offers grace feed bell waiting away people granted
-- ARGV
--   holder        string  who leads
--   epoch         string  under which it leads
--   news          string  epoch and number of the news that it wrote last, see `sync`
--   max_step_ms   int     the most that this look may add to the lease clock
--   ticket_ms     int     how long a ticket lasts
--   late_ms       int     how much later than told a call may come
--   gone_ms       int     how late a call may come before the place is lost
--   forfeit       int     no-shows that cost the place; 0: none does
--   expire_limit  int     bound: tickets and held places taken back in one tick
--   scan_limit    int     bound: people scanned in one line
--   lines         string  line and weight of every class: `:vip=1 =3`
--   now           int     test override of the server's clock in µs; empty outside tests
--   tids...       string  ids for the tickets; bound: at most so many are issued, and at most 100
-- REPLY
--   TICKED issued:int expired:int gone:int waiting:int room:int more:int tickets:[string] traces:[string]   what was done; how many wait; how many more could enter; whether heads were left unseen; user and ticket id in turn; ticket id and trace of who was sampled, in turn
--   NEWS_LOST                                                              the ledger holds other news of the servers
--   DEPOSED                                                                somebody else leads, or nobody

-- @include now_us
-- @include int
-- @include leads
-- @include world_open
-- @include world_clock
-- @include world_expire
-- @include pending_expire
-- @include world_room
-- @include world_stuck
-- @include line_heads
-- @include line_sweep
-- @include lines_issue
-- @include line_pace
-- @include world_audit

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
if redis.call('HGET', keys.world, 'news') ~= args.news then
  return { 'NEWS_LOST' }
end
local ctx = world_open(keys, now_us(args.now))
redis.call('HSET', keys.world, 'led_at', int(ctx.now))
ctx.ticket_ms, ctx.late_ms, ctx.gone_ms, ctx.forfeit = args.ticket_ms, args.late_ms, args.gone_ms, args.forfeit
ctx.expire_limit, ctx.scan_limit = args.expire_limit, args.scan_limit
world_clock(keys, ctx, args.max_step_ms)

local expired = world_expire(keys, ctx)
pending_expire(keys, ctx)
local room, free = world_room(keys, ctx)
if not ctx.is_heard then
  room, free = 0, 0
end
world_stuck(keys, ctx)
local most = math.min(#args.tids, 100) -- document 002's hard limit, whatever a caller sends
local wanted = math.min(room, most)
local lines, weights, gone, more = {}, 0, 0, 0
for suffix, weight in string.gmatch(args.lines, '([^ =]*)=(%d+)') do
  local heads, unseen = line_heads(keys, ctx, suffix, wanted)
  local credit = tonumber(redis.call('HGET', keys.world, 'credit' .. suffix) or '0')
  lines[#lines + 1] = { suffix = suffix, weight = tonumber(weight), heads = heads, at = 1, issued = 0, credit = credit }
  weights = weights + weight
  gone = gone + line_sweep(keys, ctx, suffix, math.ceil(ctx.scan_limit / 4))
  more = math.max(more, unseen)
end

local issued, tickets, traces = lines_issue(keys, ctx, lines, wanted, math.min(free, most), args.tids)
local length = 0
for _, line in ipairs(lines) do
  redis.call('HSET', keys.world, 'credit' .. line.suffix, math.max(-weights, math.min(weights, line.credit)))
  local left = redis.call('ZCARD', keys.waiting .. line.suffix)
  line_pace(keys, ctx, line.suffix, line.issued, left)
  length = length + left
end
world_audit(keys, issued)
return { 'TICKED', issued, expired, gone, length, room - issued, more, tickets, traces }
