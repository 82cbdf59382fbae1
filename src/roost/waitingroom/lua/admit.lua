#!lua
-- One tick of a world: time passes, what has ended is taken back, and tickets go to the heads of the lines.
--
-- The budget is computed here, where it is spent: a tick that is repeated, doubled or run by two leaders finds no
-- room and issues nothing. Heads that are late for the call they were told to make are put aside, keep their
-- place, and block nobody. The lines take turns by their weights; a weight of 0 goes before all others.
--
-- KEYS @waitingroom
--   world servers offers grace feed bell waiting away people granted
-- ARGV
--   epoch        int     of the leader; an older one than was seen is refused
--   max_step_ms  int     the most that this look may add to the lease clock
--   ticket_ms    int     how long a ticket lasts
--   late_ms      int     how much later than told a call may come
--   gone_ms      int     how late a call may come before the place is lost
--   forfeit      int     no-shows that cost the place; 0: none does
--   reap         int     bound: tickets and held places taken back in one tick
--   looks        int     bound: people looked at in one line
--   lines        string  line and weight of every class: `:vip=1 =3`
--   now          int     test override of the server's clock in µs; empty outside tests
--   tids...      string  ids for the tickets; bound: at most so many are issued
-- REPLY
--   TICKED issued:int expired:int gone:int waiting:int room:int more:int   what was done; how many wait; how many more could enter; whether heads were left unseen
--   DEPOSED epoch:int                                                      another leader has ticked since

-- @include now_us
-- @include lease_clock
-- @include world_open
-- @include world_room
-- @include server_record
-- @include person_left
-- @include person_offer
-- @include person_return
-- @include line_heads
-- @include line_sweep
-- @include line_turn
-- @include line_pace

local epoch, max_step_ms, ticket_ms = args.epoch, args.max_step_ms, args.ticket_ms
local late_ms, gone_ms, forfeit = args.late_ms, args.gone_ms, args.forfeit
local reap, looks, weights = args.reap, args.looks, args.lines
local now = now_us(args.now)

local fence = tonumber(redis.call('HGET', keys.world, 'fence') or '0')
if epoch < fence then
  return { 'DEPOSED', fence }
end
redis.call('HSET', keys.world, 'fence', epoch)
world_open(keys, now)
local clock = lease_clock(keys.world, now, max_step_ms)

local ended = redis.call('ZRANGEBYSCORE', keys.offers, '-inf', clock, 'LIMIT', 0, reap)
for _, user in ipairs(ended) do
  person_return(keys, keys.people .. user, user, forfeit)
end
for _, user in ipairs(redis.call('ZRANGEBYSCORE', keys.grace, '-inf', clock, 'LIMIT', 0, reap)) do
  redis.call('ZREM', keys.grace, user)
  person_left(keys.people .. user, 'dropped')
end

local room, free, most = world_room(keys, now, clock)
local wanted, left = math.min(room, #args.tids), math.min(free, #args.tids)
local part = math.ceil(looks / 4)
local lines, total, gone, length, more = {}, 0, 0, 0, 0
for suffix, weight in string.gmatch(weights, '([^ =]*)=(%d+)') do
  local heads, unseen = line_heads(keys, keys.waiting .. suffix, keys.away .. suffix, wanted, looks, clock, late_ms, most)
  gone = gone + line_sweep(keys, keys.waiting .. suffix, keys.away .. suffix, suffix, part, clock, late_ms, gone_ms)
  lines[#lines + 1] = { suffix = suffix, weight = tonumber(weight), heads = heads, at = 1, issued = 0,
    credit = tonumber(redis.call('HGET', keys.world, 'credit' .. suffix) or '0') }
  total = total + weight
  more = math.max(more, unseen)
end

local issued = 0
for _ = 1, wanted do
  local turn = issued < wanted and line_turn(lines, left - issued)
  if not turn then
    break
  end
  for _, user in ipairs(turn.heads[turn.at]) do
    issued = issued + 1
    turn.issued = turn.issued + 1
    redis.call('ZREM', keys.waiting .. turn.suffix, user)
    person_offer(keys, keys.people .. user, now, clock, user, args.tids[issued], ticket_ms)
  end
  turn.at = turn.at + 1
end
for _, line in ipairs(lines) do
  redis.call('HSET', keys.world, 'credit' .. line.suffix, math.max(-total, math.min(total, line.credit)))
  line_pace(keys, line.suffix, line.issued, clock)
  length = length + redis.call('ZCARD', keys.waiting .. line.suffix)
end

-- The promise, counted anew from the rows: what was issued must fit, whatever the sums say.
local cap, inside = 0, 0
local rows = redis.call('HGETALL', keys.servers)
for at = 1, #rows, 2 do
  local server = server_record(keys, rows[at])
  cap, inside = cap + server.cap, inside + server.n + server.c - server.k
end
cap = math.min(cap, tonumber(redis.call('HGET', keys.world, 'limit') or cap))
local over = inside + redis.call('ZCARD', keys.offers) + redis.call('ZCARD', keys.grace) - cap
if issued > 0 and over > 0 then
  redis.call('HINCRBY', keys.world, 'overadmit', math.min(issued, over))
end
return { 'TICKED', issued, #ended, gone, length, room - issued, more }
