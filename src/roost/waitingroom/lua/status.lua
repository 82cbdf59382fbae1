#!lua
-- What a person has in a world, and that they are still there. Asking changes nobody's order.
--
-- A ticket that has ended is answered as the place it turns into.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   servers   hash     server id → its row in the ledger
--   offers    zset     user → lease time at which the ticket ends
--   grace     zset     user → lease time until which a place inside is held
--   waiting*  zset     per class: user → place in the order
--   away*     zset     per class: user → place, of those who are not there just now
--   people*   hash     per user: state and what else is known
--   granted*  string   per ticket id: who it is for, JSON
-- ARGV
--   user       string  user id
--   forfeit    int     no-shows that cost the place; 0: none does
--   period_ms  int     rate limit: time between two calls of one person; 0: none
--   burst      int     calls at once
--   now        int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   WAITING seq:int rank:int away_ahead:int was_away:int poll_ms:int fast:int slow:int line:string opens_ms:int   in the line
--   OFFERED seq:int tid:string left_ms:int                                               holds a ticket
--   INSIDE server:string                                                                 is in the game
--   HELD left_ms:int                                                                     dropped out of the game; the place is held
--   LIMITED retry_ms:int                                                                 asks too often
--   NOBODY cause:string                                                                  has no place; how they lost it, where that is known
-- FLAGS idempotent

-- @include now_us
-- @include gcra
-- @include person_return
-- @include person_place
-- @include person_told
-- @include person_is_inside

local world, servers, offers, grace, waiting, away = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local people, granted = KEYS[7], KEYS[8]
local user, forfeit, period_ms, burst = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = now_us(ARGV[5])

local person = redis.call('HMGET', people .. user, 'state', 'seq', 'line', 'shown', 'tat', 'tid', 'exp', 'server', 'cause')
local state = person[1]
if not state then
  return { 'NOBODY', '' }
end
local retry_ms, tat = gcra(person[5], now, period_ms, burst)
if retry_ms > 0 then
  return { 'LIMITED', retry_ms }
end
local line = person[3] or ''
local numbers = redis.call('HMGET', world, 'opens_at', 'fast' .. line, 'slow' .. line, 'clock_ms')
local clock = tonumber(numbers[4] or '0')
if state == 'waiting' or state == 'away' then
  return { 'WAITING', unpack(person_place(waiting, away, people .. user, user, now, clock, person, numbers, tat)) }
end
redis.call('HSET', people .. user, 'tat', tat)
if state == 'offered' then
  redis.call('HSET', people .. user, 'due', string.format('%.0f', clock + 2000))
  if clock < tonumber(person[7]) then
    return { 'OFFERED', person[2], person[6], person[7] - clock }
  end
  person_return(world, offers, granted, waiting, people .. user, user, forfeit)
  if redis.call('HGET', people .. user, 'state') == 'waiting' then
    return { 'WAITING', unpack(person_told(world, waiting, away, people .. user, user, now, clock, tat)) }
  end
  return { 'NOBODY', redis.call('HGET', people .. user, 'cause') }
end
if state == 'inside' and person_is_inside(servers, people .. user) then
  return { 'INSIDE', person[8] }
end
local held_until = state == 'grace' and tonumber(redis.call('ZSCORE', grace, user))
if held_until and held_until > clock then
  return { 'HELD', held_until - clock }
end
return { 'NOBODY', person[9] or (state == 'inside' and 'crash') or '' }
