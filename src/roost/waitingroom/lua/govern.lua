#!lua
-- Change how a world is run. What is empty stays as it is; a dash takes a value away.
--
-- KEYS @waitingroom
--   world feed bell
-- ARGV
--   wanted    string  auto, hold, closing, queue-all or off
--   message   string  what everybody in the line is shown
--   limit     string  most people inside, whatever the servers can take
--   rate      string  tickets in a second
--   opens_at  string  when it opens, µs: who comes before takes part in a draw; a dash: it is open
--   seed      string  of the draw; given along with opens_at
--   expected  string  revision that the caller saw; empty: whatever it is
--   now       int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   GOVERNED revision:int   changed
--   CONFLICT revision:int   somebody else changed it meanwhile

-- @include now_us
-- @include int
-- @include world_open
-- @include feed_append

local wanted, message, limit, rate, opens_at = args.wanted, args.message, args.limit, args.rate, args.opens_at
local seed, expected = args.seed, args.expected
local now = now_us(args.now)

world_open(keys, now)
local revision = redis.call('HGET', keys.world, 'revision') or '0'
if expected ~= '' and expected ~= revision then
  return { 'CONFLICT', revision }
end
if now < tonumber(redis.call('HGET', keys.world, 'opens_at') or '0') then
  seed = '' -- an opening that is put off keeps its draw
end
local given = { mode = wanted, message = message, limit = limit, rate = rate, opens_at = opens_at, seed = seed }
for name, value in pairs(given) do
  if value == '-' then
    redis.call('HDEL', keys.world, name)
  elseif value ~= '' then
    redis.call('HSET', keys.world, name, value)
  end
end
if seed ~= '' then
  -- Lots are drawn from the next 2^32 places: behind those who wait already, before those who come after the opening.
  local from = redis.call('HGET', keys.world, 'seq')
  redis.call('HSET', keys.world, 'lots_from', from, 'seq', int(from + 4294967296))
end
if rate == '-' then
  redis.call('HDEL', keys.world, 'tokens', 'tokens_at')
end
revision = redis.call('HINCRBY', keys.world, 'revision', 1)
feed_append(keys, 'governed', now, 10000, { 'event', 'governed', 'mode', wanted, 'limit', limit, 'rate', rate,
  'opensAt', opens_at })
return { 'GOVERNED', revision }
