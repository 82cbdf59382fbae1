#!lua
-- A gateway signs that it is there, and marks people as there whom it answered without asking the store. Who was away
-- stands in the line again. A mark names the place that its receipt shows: whoever has another by now is not marked by
-- it, else a receipt of a place that is gone would stay young.
--
-- The world's clock runs only while gateways sign, see `world_clock`. A silence of more than ten seconds is noted.
--
-- KEYS @waitingroom
--   world waiting away people
-- ARGV
--   ticket_key  string  digest of the key with which the gateway signs tickets; empty: it is not told
--   now         int     test override of the server's clock in µs; empty outside tests
--   marks...    string  user id, place, and time to their next call in ms, in turn; bound: 1000 people
-- REPLY
--   TOUCHED count:int   how many are in the line at that place; the others must be asked about
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
for at = 1, #args.marks, 3 do
  local user, seq, poll_ms = args.marks[at], args.marks[at + 1], args.marks[at + 2]
  local person = redis.call('HMGET', keys.people .. user, 'state', 'seq', 'line')
  local state = person[2] == seq and person[1]
  if state == 'away' then
    line_rejoin(keys, person[3] or '', user, seq)
  end
  if state == 'away' or state == 'waiting' or state == 'offered' then
    redis.call('HSET', keys.people .. user, 'due', int(clock + poll_ms))
    count = count + (state == 'offered' and 0 or 1)
  end
end
return { 'TOUCHED', count }
