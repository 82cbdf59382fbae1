#!lua
-- Change how a world is run. What is empty stays as it is; a dash takes a value away.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   feed      stream   what happens in the world
--   bell      channel  rings when the feed has grown
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
-- @include world_open
-- @include feed_append

local world, feed, bell = KEYS[1], KEYS[2], KEYS[3]
local wanted, message, limit, rate, opens_at = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local seed, expected = ARGV[6], ARGV[7]
local now = now_us(ARGV[8])

world_open(world, now)
local revision = redis.call('HGET', world, 'revision') or '0'
if expected ~= '' and expected ~= revision then
  return { 'CONFLICT', revision }
end
if now < tonumber(redis.call('HGET', world, 'opens_at') or '0') then
  seed = '' -- an opening that is put off keeps its draw
end
local given = { mode = wanted, message = message, limit = limit, rate = rate, opens_at = opens_at, seed = seed }
for name, value in pairs(given) do
  if value == '-' then
    redis.call('HDEL', world, name)
  elseif value ~= '' then
    redis.call('HSET', world, name, value)
  end
end
if seed ~= '' then
  -- Lots are drawn from the next 2^32 places: behind whoever waits already, before whoever comes after the opening.
  local from = redis.call('HGET', world, 'seq')
  redis.call('HSET', world, 'lots_from', from, 'seq', string.format('%.0f', from + 4294967296))
end
if rate == '-' then
  redis.call('HDEL', world, 'tokens', 'tokens_at')
end
revision = redis.call('HINCRBY', world, 'revision', 1)
feed_append(feed, bell, 'governed', now, 10000, { 'event', 'governed', 'mode', wanted, 'limit', limit, 'rate', rate,
  'opensAt', opens_at })
return { 'GOVERNED', revision }
