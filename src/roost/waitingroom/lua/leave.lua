#!lua
-- Give up a place, a ticket or a place that is held. Who is in the game leaves through the game server. A call that comes
-- late names the place that it leaves, and does not touch a newer one.
--
-- KEYS @waitingroom
--   world servers offers grace feed bell waiting away people granted
-- ARGV
--   user   string  user id
--   seq    string  the place that they leave; empty: whichever they have
--   cause  string  left, or kicked by an operator
--   now    int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEFT                   has no place any more
--   NO_PLACE cause:string  had none
--   INSIDE server:string   is in the game
-- FLAGS idempotent

-- @include now_us
-- @include feed_append
-- @include person_left
-- @include party_shrink
-- @include person_server

local user, cause = args.user, args.cause
local now = now_us(args.now)

local person = redis.call('HMGET', keys.people .. user, 'state', 'line', 'tid', 'cause', 'seq', 'size')
local state, line = person[1], person[2] or ''
if not state or state == 'left' or args.seq ~= '' and args.seq ~= person[5] then
  return { 'NO_PLACE', person[4] or '' }
end
local server = person_server(keys, user)
if server then
  return { 'INSIDE', server }
end
redis.call('ZREM', keys.waiting .. line, user)
redis.call('ZREM', keys.away .. line, user)
redis.call('ZREM', keys.offers, user)
redis.call('ZREM', keys.grace, user)
if person[3] then
  redis.call('DEL', keys.granted .. person[3])
end
if person[6] then
  party_shrink(keys, line, person[5])
end
person_left(keys, user, cause)
redis.call('HINCRBY', keys.world, 'left', 1)
if cause ~= 'left' then
  feed_append(keys, cause, now, 10000, { 'event', cause, 'user', user, 'seq', person[5] })
end
return { 'LEFT' }
