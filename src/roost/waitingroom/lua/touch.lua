#!lua
-- Mark people as there whom a gateway answered without asking the store. Who was away stands in the line again.
--
-- KEYS @waitingroom
--   world waiting away people
-- ARGV
--   users_and_poll_ms...  string  user id and time to their next call in ms, in turn; bound: 1000 people
-- REPLY
--   TOUCHED count:int   how many are in the line; the others must be asked about
-- FLAGS idempotent

-- @include int
-- @include line_rejoin

local clock = tonumber(redis.call('HGET', keys.world, 'clock_ms') or '0')
local count = 0
for at = 1, #args.users_and_poll_ms, 2 do
  local user, poll_ms = args.users_and_poll_ms[at], args.users_and_poll_ms[at + 1]
  local person = redis.call('HMGET', keys.people .. user, 'state', 'seq', 'line')
  if person[1] == 'away' then
    line_rejoin(keys, person[3] or '', user, person[2])
  end
  if person[1] == 'away' or person[1] == 'waiting' or person[1] == 'offered' then
    redis.call('HSET', keys.people .. user, 'due', int(clock + poll_ms))
    count = count + (person[1] == 'offered' and 0 or 1)
  end
end
return { 'TOUCHED', count }
