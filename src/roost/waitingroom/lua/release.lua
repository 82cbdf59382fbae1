#!lua
-- A person has left a game server. The server's next report says that it has room again, nothing else does.
--
-- After a clean stop they have no place any more; one who dropped out is held one for a while; one whose hand-off failed
-- stands where they stood.
--
-- KEYS @waitingroom
--   world grace waiting people inside
-- ARGV
--   user      string  user id
--   server    string  server id
--   life      string  the life of the server
--   conn      string  the connection that was let in
--   how       string  clean, dropped or failed
--   grace_ms  int     how long a place is held for one who dropped out; 0: not at all
-- REPLY
--   RELEASED held_ms:int   is out; how long the place is held
--   NOT_INSIDE             was not inside by that connection
-- FLAGS idempotent

-- @include int
-- @include person_left

local user, id, life, conn, how, grace_ms = args.user, args.server, args.life, args.conn, args.how, args.grace_ms

local person = redis.call('HMGET', keys.people .. user, 'state', 'server', 'life', 'conn', 'seq', 'line')
if person[1] ~= 'inside' or person[2] ~= id or person[3] ~= life or person[4] ~= conn then
  return { 'NOT_INSIDE' }
end
redis.call('SREM', keys.inside .. id .. ':' .. life, user)
local clock = tonumber(redis.call('HGET', keys.world, 'clock_ms') or '0')
redis.call('HDEL', keys.people .. user, 'server', 'life', 'conn', 'number', 'tid')
if how == 'failed' then
  redis.call('HSET', keys.people .. user, 'state', 'waiting', 'due', int(clock + 10000))
  redis.call('ZADD', keys.waiting .. (person[6] or ''), person[5], user)
  return { 'RELEASED', 0 }
end
if how == 'dropped' and grace_ms > 0 then
  redis.call('HSET', keys.people .. user, 'state', 'grace')
  redis.call('ZADD', keys.grace, clock + grace_ms, user)
  return { 'RELEASED', grace_ms }
end
person_left(keys, user, how)
return { 'RELEASED', 0 }
