#!lua
-- A gateway signs that it is there, and marks people as there whom it answered without asking the store. Who was away
-- stands in the line again.
--
-- The world's clock runs only while gateways sign, see `world_clock`. A silence of more than ten seconds is noted.
--
-- KEYS @waitingroom
--   world waiting away people
-- ARGV
--   ticket_key            string  digest of the key with which the gateway signs tickets; empty: it is not told
--   now                   int     test override of the server's clock in µs; empty outside tests
--   users_and_poll_ms...  string  user id and time to their next call in ms, in turn; bound: 1000 people
-- REPLY
--   TOUCHED count:int   how many are in the line; the others must be asked about
-- FLAGS idempotent

-- @include now_us
-- @include int
-- @include line_rejoin

local now = now_us(args.now)
local world = redis.call('HMGET', keys.world, 'clock_ms', 'sign_at')
local clock, sign_at = tonumber(world[1] or '0'), tonumber(world[2] or now)
if now - sign_at > 10000000 then
  redis.call('HSET', keys.world, 'gap', 1)
end
redis.call('HSET', keys.world, 'sign_at', int(now))
redis.call('HINCRBY', keys.world, 'signs', 1)
if args.ticket_key ~= '' then
  redis.call('HSET', keys.world, 'ticket_key', args.ticket_key)
end
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
