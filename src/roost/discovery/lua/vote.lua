#!lua
-- Take one checker's whole opinion, and let the majority of the live checkers decide who is unhealthy.
--
-- A checker says again and again which instances it finds unhealthy; what it does not name it finds well. One
-- that has not spoken for its time to live does not count, nor do its votes. Each turn of an instance is
-- told once, whichever vote decided it. A vote about another life does not count. Where no checker is left,
-- everything stays as it was decided last.
--
-- KEYS @discovery
--   meta index checkers votes unhealthy overrides feed bell records beats history
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
-- @include checkers_update
-- @include votes_count
-- @include mark_unhealthy

local now = now_us(args.now)

local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
local live = checkers_update(keys, clock, args.checker, args.ballots, args.ttl_ms)
local counts, votes = votes_count(keys), {}
for id, count in pairs(counts) do
  votes[#votes + 1] = id
  votes[#votes + 1] = tostring(count)
  local entry = instance_entry(keys, id)
  if count * 2 > live and redis.call('HGET', keys.unhealthy, id) ~= entry.life then
    redis.call('HSET', keys.unhealthy, id, entry.life)
    mark_unhealthy(keys, now, id, entry, true)
  end
end
if live > 0 then
  local decided = redis.call('HGETALL', keys.unhealthy)
  for at = 1, #decided, 2 do
    local id, life = decided[at], decided[at + 1]
    local entry = instance_entry(keys, id)
    local lives = entry and entry.life == life
    if not lives or (counts[id] or 0) * 2 <= live then
      redis.call('HDEL', keys.unhealthy, id)
      if lives then
        mark_unhealthy(keys, now, id, entry, false)
      end
    end
  end
end
return { 'VOTED', live, votes }
