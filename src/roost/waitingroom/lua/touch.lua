#!lua
-- Mark people as there whom a gateway answered without asking the store. Who was away stands in the line again.
--
-- KEYS @waitingroom
--   world waiting away people
-- ARGV
--   now                   int     test override of the server's clock in µs; empty outside tests
--   users_and_poll_ms...  string  user id and time to their next call in ms, in turn; bound: 1000 people
-- REPLY
--   TOUCHED count:int   how many are in the line; the others must be asked about
-- FLAGS idempotent

-- @include now_us

local now = now_us(args.now)

local clock = tonumber(redis.call('HGET', keys.world, 'clock_ms') or '0')
local count = 0
for at = 1, #args.users_and_poll_ms, 2 do
  local user, poll_ms = args.users_and_poll_ms[at], args.users_and_poll_ms[at + 1]
  local person = redis.call('HMGET', keys.people .. user, 'state', 'seq', 'line')
  if person[1] == 'away' then
    redis.call('ZREM', keys.away .. (person[3] or ''), user)
    redis.call('ZADD', keys.waiting .. (person[3] or ''), person[2], user)
    redis.call('HSET', keys.people .. user, 'state', 'waiting')
  end
  if person[1] == 'away' or person[1] == 'waiting' or person[1] == 'offered' then
    redis.call('HSET', keys.people .. user, 'due', string.format('%.0f', clock + poll_ms))
    count = count + (person[1] == 'offered' and 0 or 1)
  end
end
return { 'TOUCHED', count }
