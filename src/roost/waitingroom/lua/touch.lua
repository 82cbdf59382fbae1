#!lua
-- Mark people as there whom a gateway answered without asking the store. Who was away stands in the line again.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   waiting*  zset     per class: user → place in the order
--   away*     zset     per class: user → place, of those who are not there just now
--   people*   hash     per user: state and what else is known
-- ARGV
--   now                   int     test override of the server's clock in µs; empty outside tests
--   users_and_poll_ms...  string  user id and time to their next call in ms, in turn; bound: 1000 people
-- REPLY
--   TOUCHED count:int   how many are in the line; the others must be asked about
-- FLAGS idempotent

-- @include now_us

local world, waiting, away, people = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now = now_us(ARGV[1])

local clock = tonumber(redis.call('HGET', world, 'clock_ms') or '0')
local count = 0
for at = 2, #ARGV - 1, 2 do
  local user = ARGV[at]
  local person = redis.call('HMGET', people .. user, 'state', 'seq', 'line')
  if person[1] == 'away' then
    redis.call('ZREM', away .. (person[3] or ''), user)
    redis.call('ZADD', waiting .. (person[3] or ''), person[2], user)
    redis.call('HSET', people .. user, 'state', 'waiting')
  end
  if person[1] == 'away' or person[1] == 'waiting' or person[1] == 'offered' then
    redis.call('HSET', people .. user, 'due', string.format('%.0f', clock + ARGV[at + 1]))
    count = count + (person[1] == 'offered' and 0 or 1)
  end
end
return { 'TOUCHED', count }
