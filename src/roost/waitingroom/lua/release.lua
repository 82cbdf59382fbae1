#!lua
-- A person has left a game server. The server's next report says that it has room again, nothing else does.
--
-- After a clean stop they have no place any more; one who dropped out is held one for a while; one whose hand-off failed
-- stands where they stood.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   grace     zset     user → lease time until which a place inside is held
--   waiting*  zset     per class: user → place in the order
--   people*   hash     per user: state and what else is known
--   inside*   set      per server and life: users that it let in
-- ARGV
--   user      string  user id
--   server    string  server id
--   life      string  the life of the server
--   conn      string  the connection that was let in
--   how       string  clean, dropped or failed
--   grace_ms  int     how long a place is held for one who dropped out; 0: not at all
--   now       int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   RELEASED held_ms:int   is out; how long the place is held
--   NOT_INSIDE             was not inside by that connection
-- FLAGS idempotent

-- @include now_us
-- @include person_left

local world, grace, waiting, people, inside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local user, id, life, conn, how, grace_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local now = now_us(ARGV[7])

local person = redis.call('HMGET', people .. user, 'state', 'server', 'life', 'conn', 'seq', 'line')
if person[1] ~= 'inside' or person[2] ~= id or person[3] ~= life or person[4] ~= conn then
  return { 'NOT_INSIDE' }
end
redis.call('SREM', inside .. id .. ':' .. life, user)
local clock = tonumber(redis.call('HGET', world, 'clock_ms') or '0')
redis.call('HDEL', people .. user, 'server', 'life', 'conn', 'number', 'tid')
if how == 'failed' then
  redis.call('HSET', people .. user, 'state', 'waiting', 'due', string.format('%.0f', clock + 10000))
  redis.call('ZADD', waiting .. (person[6] or ''), person[5], user)
  return { 'RELEASED', 0 }
end
if how == 'dropped' and grace_ms > 0 then
  redis.call('HSET', people .. user, 'state', 'grace')
  redis.call('ZADD', grace, clock + grace_ms, user)
  return { 'RELEASED', grace_ms }
end
person_left(people .. user, how)
return { 'RELEASED', 0 }
