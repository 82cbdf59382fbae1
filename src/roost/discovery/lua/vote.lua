#!lua
-- Take one checker's whole opinion, and let the majority of the live checkers decide who is unhealthy.
--
-- A checker says again and again which instances it finds unhealthy; what it does not name it finds well. One
-- that has not spoken for its time to live does not count, nor do its votes. Each turn of an instance is
-- told once, whoever's vote decided it. A vote about another life does not count. Where no checker is left,
-- everything stays as it was decided last.
--
-- KEYS @discovery
--   meta index checkers votes ill overrides feed bell records beats history
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

local checker, ballots, ttl_ms = args.checker, args.ballots, args.ttl_ms
local now = now_us(args.now)

local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
redis.call('ZADD', keys.checkers, ttl_ms > 0 and clock + ttl_ms or '-inf', checker)
redis.call('HSET', keys.votes, checker, ballots)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', keys.checkers, '-inf', '(' .. clock)) do
  redis.call('ZREM', keys.checkers, silent)
  redis.call('HDEL', keys.votes, silent)
end

local live, counts, told = redis.call('ZCARD', keys.checkers), {}, {}
for _, opinion in ipairs(redis.call('HVALS', keys.votes)) do
  local named = {}
  for id, life in string.gmatch(opinion, '([^\t\n]+)\t(%d+)') do
    local entry = instance_entry(keys, id)
    if entry and entry.life == life and not named[id] then
      named[id] = true
      counts[id] = (counts[id] or 0) + 1
    end
  end
end

for id, count in pairs(counts) do
  told[#told + 1] = id
  told[#told + 1] = tostring(count)
  local entry = instance_entry(keys, id)
  if count * 2 > live and redis.call('HGET', keys.ill, id) ~= entry.life then
    redis.call('HSET', keys.ill, id, entry.life)
    instance_turn(keys, now, id, entry, 2)
  end
end
if live > 0 then
  local decided = redis.call('HGETALL', keys.ill)
  for at = 1, #decided, 2 do
    local id, life = decided[at], decided[at + 1]
    local entry = instance_entry(keys, id)
    local lives = entry and entry.life == life
    if not lives or (counts[id] or 0) * 2 <= live then
      redis.call('HDEL', keys.ill, id)
      if lives then
        instance_turn(keys, now, id, entry, -2)
      end
    end
  end
end
return { 'VOTED', live, told }
