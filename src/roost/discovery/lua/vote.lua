#!lua
-- Take one checker's whole opinion, and let the majority of the live checkers decide who is unhealthy.
--
-- A checker says again and again which instances it finds unhealthy; what it does not name it finds well. One
-- that has not spoken for its time to live does not count, nor do its votes. Each turn of an instance is
-- told once, whoever's vote decided it. A vote about another life does not count. Where no checker is left,
-- everything stays as it was decided last.
--
-- KEYS
--   meta       hash     lease clock
--   index      hash     id → place, life, nonce, name, ttl, capacity
--   checkers   zset     checker → lease time until which it counts
--   votes      hash     checker → whom it finds unhealthy: lines of id, life
--   ill        hash     id → the life in which the majority found it unhealthy
--   overrides  hash     type:serverId or id → what the operator ordered
--   feed       stream   every change of discovery
--   bell       channel  rings when the feed has grown
--   records*   hash     per place: id → record
--   beats*     hash     per place: id → last beat
--   history*   list     per id: what happened to it
-- ARGV
--   checker    string   who votes
--   ballots    bytes    lines of id, tab, life; bound: the caller names at most 1000
--   ttl_ms     int      how long it counts, in lease time; 0: it leaves
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   VOTED live:int votes:[string]   how many checkers count, and a flat list of id and votes against it
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_turn

local meta, index, checkers, votes, ill = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local overrides, feed, bell = KEYS[6], KEYS[7], KEYS[8]
local records, beats, history = KEYS[9], KEYS[10], KEYS[11]
local checker, ballots, ttl_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = now_us(ARGV[4])

local clock = tonumber(redis.call('HGET', meta, 'clock_ms') or '0')
redis.call('ZADD', checkers, ttl_ms > 0 and clock + ttl_ms or '-inf', checker)
redis.call('HSET', votes, checker, ballots)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', checkers, '-inf', '(' .. clock)) do
  redis.call('ZREM', checkers, silent)
  redis.call('HDEL', votes, silent)
end

local live, counts, told = redis.call('ZCARD', checkers), {}, {}
for _, opinion in ipairs(redis.call('HVALS', votes)) do
  local named = {}
  for id, life in string.gmatch(opinion, '([^\t\n]+)\t(%d+)') do
    local entry = instance_entry(index, id)
    if entry and entry.life == life and not named[id] then
      named[id] = true
      counts[id] = (counts[id] or 0) + 1
    end
  end
end

for id, count in pairs(counts) do
  told[#told + 1] = id
  told[#told + 1] = tostring(count)
  local entry = instance_entry(index, id)
  if count * 2 > live and redis.call('HGET', ill, id) ~= entry.life then
    redis.call('HSET', ill, id, entry.life)
    instance_turn(records, beats, history, overrides, feed, bell, now, id, entry, 2)
  end
end
if live > 0 then
  local decided = redis.call('HGETALL', ill)
  for at = 1, #decided, 2 do
    local id, life = decided[at], decided[at + 1]
    local entry = instance_entry(index, id)
    local lives = entry and entry.life == life
    if not lives or (counts[id] or 0) * 2 <= live then
      redis.call('HDEL', ill, id)
      if lives then
        instance_turn(records, beats, history, overrides, feed, bell, now, id, entry, -2)
      end
    end
  end
end
return { 'VOTED', live, told }
