#!lua
-- Give a person a place in the line of a world, or tell them what they have already.
--
-- One person has one place, however often they ask. Where nobody waits and there is room, the ticket comes at once, unless
-- no leader was seen for ten seconds. One who dropped out gets a ticket for the place that is held, also where a server's
-- end took its room (a hold that runs out costs the place, a ticket does not); one whom a crash threw out stands where they
-- stood; of one inside, the server is asked. A receipt restores a place that the store has lost, see `place_restored`.
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
--   receipt_age   int     how long ago the store last confirmed that place, ms
--   rebuild_ms    int     how long a young world honours receipts of the one before it, and waits for more
--   receipt_ms    int     how long before the birth of a young world the one before it must have confirmed the place
--   forfeit       int     no-shows that cost the place; 0: none does
--   party         string  id of the party they come with; empty: alone
--   size          int     how many the party has; bound: 8
--   trace         string  context of the entry's span; empty: it is not traced
--   period_ms     int     rate limit: time between two calls of one person; 0: none
--   burst         int     calls at once
--   now           int     test override of the server's clock in µs; empty outside tests
--   lines...      string  the line of every class; bound: as many as there are classes
-- REPLY
--   WAITING seq:int rank:int away_ahead:int was_away:int poll_ms:int fast:int slow:int line:string opens_ms:int   in the line
--   OFFERED seq:int tid:string left_ms:int                                               holds a ticket
--   INSIDE server:string                                                                 is in the game
--   HELD left_ms:int                                                                     dropped out, the place is held; nobody can give the ticket now
--   LIMITED retry_ms:int                                                                 asks too often
--   CLOSED mode:string                                                                   takes nobody new
--   FULL waiting:int                                                                     the line is as long as it may be
-- FLAGS idempotent

-- @include now_us
-- @include gcra
-- @include world_open
-- @include person_kept
-- @include person_status

local user = args.user
local ctx = world_open(keys, now_us(args.now))
ctx.ticket_ms, ctx.forfeit = args.ticket_ms, args.forfeit

local kept = person_kept(keys, user)
local retry_ms, tat = gcra(kept.tat, ctx.now, args.period_ms, args.burst)
if retry_ms > 0 then
  return { 'LIMITED', retry_ms }
end
local found = person_status(keys, ctx, user, kept, tat)
if found[1] == 'INSIDE' then
  -- @include person_asks
  return { 'INSIDE', person_asks(keys, user) }
end
local held_until = kept.state == 'grace' and redis.call('ZSCORE', keys.grace, user)
if held_until then
  -- @include world_led
  if not world_led(keys, ctx) then
    return { 'HELD', math.max(0, held_until - ctx.clock) }
  end
  -- @include person_offer
  redis.call('ZREM', keys.grace, user)
  redis.call('HDEL', keys.people .. user, 'trace')
  if args.trace ~= '' then
    redis.call('HSET', keys.people .. user, 'trace', args.trace)
  end
  found = person_offer(keys, ctx, user, args.tid)
elseif found[1] == 'NO_PLACE' then
  -- @include lines_length
  -- @include world_room
  local crashed, length = found[2] == 'crash', lines_length(keys, args.lines)
  if ctx.mode == 'closing' and not crashed or ctx.mode == 'off' and world_room(keys, ctx) < 1 then
    return { 'CLOSED', ctx.mode }
  end
  if length >= args.most_waiting and not crashed then
    return { 'FULL', length }
  end
  local given = { seq = kept.seq, line = args.line, nickname = args.nickname, region = args.region, size = 1,
    trace = args.trace }
  if not crashed then
    -- @include place_take
    local receipt = not kept.state and args.receipt_seq ~= '' and { seq = tonumber(args.receipt_seq),
      born = args.receipt_born, age_ms = args.receipt_age, rebuild_ms = args.rebuild_ms, most_ms = args.receipt_ms }
    given.seq, given.line, given.size = place_take(keys, ctx, user, args.line, receipt, args.party, args.size)
  end
  -- @include person_enters
  local at_once = given.size <= 1 and ctx.mode ~= 'queue-all' and (length == 0 or ctx.mode == 'off') and args.tid
  found = person_enters(keys, ctx, user, given, at_once, tat)
end
if found[1] == 'OFFERED' then
  return { 'OFFERED', unpack(found, 2) }
end
return { 'WAITING', unpack(found, 2) }
