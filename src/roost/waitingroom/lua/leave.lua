#!lua
-- Give up a place, a ticket or a place that is held. Who is in the game leaves through the game server.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   servers   hash     server id → its row in the ledger
--   offers    zset     user → lease time at which the ticket ends
--   grace     zset     user → lease time until which a place inside is held
--   feed      stream   what happens in the world
--   bell      channel  rings when the feed has grown
--   waiting*  zset     per class: user → place in the order
--   away*     zset     per class: user → place, of those who are not there just now
--   people*   hash     per user: state and what else is known
--   granted*  string   per ticket id: who it is for, JSON
-- ARGV
--   user   string  user id
--   cause  string  left, or kicked by an operator
--   now    int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEFT                   has no place any more
--   NOBODY cause:string    had none
--   INSIDE server:string   is in the game
-- FLAGS idempotent

-- @include now_us
-- @include feed_append
-- @include person_left
-- @include party_shrink
-- @include person_is_inside

local world, servers, offers, grace, feed, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local waiting, away, people, granted = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local user, cause = ARGV[1], ARGV[2]
local now = now_us(ARGV[3])

local person = redis.call('HMGET', people .. user, 'state', 'line', 'tid', 'cause', 'server', 'seq', 'size')
local state, line = person[1], person[2] or ''
if not state or state == 'left' then
  return { 'NOBODY', person[4] or '' }
end
if state == 'inside' and person_is_inside(servers, people .. user) then
  return { 'INSIDE', person[5] }
end
redis.call('ZREM', waiting .. line, user)
redis.call('ZREM', away .. line, user)
redis.call('ZREM', offers, user)
redis.call('ZREM', grace, user)
if person[3] then
  redis.call('DEL', granted .. person[3])
end
if person[7] then
  party_shrink(waiting .. line, away .. line, people, person[6])
end
person_left(people .. user, cause)
redis.call('HINCRBY', world, 'left', 1)
if cause ~= 'left' then
  feed_append(feed, bell, cause, now, 10000, { 'event', cause, 'user', user, 'seq', person[6] })
end
return { 'LEFT' }
