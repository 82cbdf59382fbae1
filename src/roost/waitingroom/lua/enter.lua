#!lua
-- Give a person a place in the line of a world, or tell them what they have already.
--
-- One person has one place, however often they ask. Where nobody waits and there is room, the ticket comes at
-- once. Whoever dropped out of a game and is still held a place gets a ticket for it at once; whoever a crash threw
-- out stands where they stood; of whoever is inside, the server is asked whether that is still so. A receipt
-- restores a place that the store has lost, see `place_number`.
--
-- KEYS @waitingroom
--   world servers offers grace feed bell waiting away people granted parties asking
-- ARGV
--   user          string  user id
--   nickname      string  name to show; empty: the user id
--   region        string  where from; may be empty
--   line          string  empty for the base class, else a colon and the class
--   tid           string  id of the ticket, if one is issued at once
--   ticket_ms     int     how long a ticket lasts
--   most_waiting  int     the longest that the line may be
--   receipt_seq   string  the place that a receipt proves; empty: none was shown
--   receipt_born  string  birth of the world that gave the receipt
--   receipt_age   int     how long ago the receipt was given, ms
--   rebuild_ms    int     how long a young world honours receipts of the one before it, and waits for more
--   forfeit       int     no-shows that cost the place; 0: none does
--   party         string  id of the party they come with; empty: alone
--   size          int     how many the party has; bound: 8
--   period_ms     int     rate limit: time between two calls of one person; 0: none
--   burst         int     calls at once
--   now           int     test override of the server's clock in µs; empty outside tests
--   lines...      string  the line of every class; bound: as many as there are classes
-- REPLY
--   WAITING seq:int rank:int away_ahead:int was_away:int poll_ms:int fast:int slow:int line:string opens_ms:int   in the line
--   OFFERED seq:int tid:string left_ms:int                                               holds a ticket
--   INSIDE server:string                                                                 is in the game
--   LIMITED retry_ms:int                                                                 asks too often
--   CLOSED mode:string                                                                   takes nobody new
--   FULL waiting:int                                                                     the line is as long as it may be
-- FLAGS idempotent

-- @include now_us
-- @include gcra
-- @include world_open
-- @include world_room
-- @include place_number
-- @include place_lot
-- @include party_place
-- @include person_new
-- @include person_offer
-- @include person_return
-- @include person_told
-- @include person_is_inside
-- @include person_asks

local user, nickname, region, line = args.user, args.nickname, args.region, args.line
local tid, ticket_ms, most_waiting = args.tid, args.ticket_ms, args.most_waiting
local receipt_seq, receipt_born, receipt_age = tonumber(args.receipt_seq), args.receipt_born, args.receipt_age
local rebuild_ms, forfeit = args.rebuild_ms, args.forfeit
local party, size, period_ms, burst = args.party, args.size, args.period_ms, args.burst
local now = now_us(args.now)

local clock, born = world_open(keys, now)
local person = redis.call('HMGET', keys.people .. user, 'state', 'seq', 'cause', 'tat')
local state = person[1]
local retry_ms, tat = gcra(person[4], now, period_ms, burst)
if retry_ms > 0 then
  return { 'LIMITED', retry_ms }
end
if state then
  redis.call('HSET', keys.people .. user, 'tat', tat)
end
if state == 'offered' then
  local kept = redis.call('HMGET', keys.people .. user, 'tid', 'exp')
  if clock < tonumber(kept[2]) then
    return { 'OFFERED', person[2], kept[1], kept[2] - clock }
  end
  person_return(keys, keys.people .. user, user, forfeit)
  state = redis.call('HGET', keys.people .. user, 'state')
end
if state == 'waiting' or state == 'away' then
  return { 'WAITING', unpack(person_told(keys, keys.people .. user, user, now, clock, tat)) }
end
if state == 'inside' and person_is_inside(keys, keys.people .. user) then
  return { 'INSIDE', person_asks(keys, keys.people .. user, user) }
end
if state == 'grace' and redis.call('ZREM', keys.grace, user) == 1 then
  person_offer(keys, keys.people .. user, now, clock, user, tid, ticket_ms)
  return { 'OFFERED', person[2], tid, ticket_ms }
end

local was_thrown_out = state == 'inside' or (state == 'left' and person[3] == 'crash')
local mode = redis.call('HGET', keys.world, 'mode') or 'auto'
if mode == 'closing' and not was_thrown_out then
  return { 'CLOSED', mode }
end
local length = 0
for _, suffix in ipairs(args.lines) do
  length = length + redis.call('ZCARD', keys.waiting .. suffix)
end
if mode == 'off' and world_room(keys, now, clock) < 1 then
  return { 'CLOSED', mode }
end
if length >= most_waiting and not was_thrown_out then
  return { 'FULL', length }
end

local seq = was_thrown_out and person[2] or place_lot(keys, now, user)
  or place_number(keys, now, clock, born, not state and receipt_seq, receipt_born, receipt_age, rebuild_ms)
if size > 1 and not was_thrown_out then
  seq, line = party_place(keys.parties .. party, seq, line)
end
person_new(keys.people .. user, user, clock, seq, line, nickname, region, was_thrown_out and 1 or size)
redis.call('HINCRBY', keys.world, 'entries', 1)
local at_once = size <= 1 and mode ~= 'queue-all' and (length == 0 or mode == 'off')
if at_once and world_room(keys, now, clock) > 0 then
  person_offer(keys, keys.people .. user, now, clock, user, tid, ticket_ms)
  return { 'OFFERED', seq, tid, ticket_ms }
end
redis.call('ZADD', keys.waiting .. line, seq, user)
local place = person_told(keys, keys.people .. user, user, now, clock, tat)
if place[6] > 0 and place[9] == 0 then
  redis.call('HSET', keys.people .. user, 'eta', math.floor(place[2] * 1000000 / place[6]))
end
return { 'WAITING', unpack(place) }
