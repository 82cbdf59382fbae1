#!lua
-- Take what one checker newly finds of the instances it asks, and let the majority of those assigned to each decide.
--
-- A ballot is a change: what a checker said of an instance stands until it says something else, leaves, or has not
-- spoken for its time to live. Each instance is judged by up to three of the live checkers, by `assigned_checkers`; only
-- these count, and who has said nothing of it counts for neither side. The verdict turns where more than half of the
-- assigned say so (of two both) and stays otherwise. Only the instances that are named are counted: when the live
-- checkers change, each of them says again what it has found. Each turn is told once, whichever vote decided it.
--
-- KEYS @discovery
--   meta index checkers votes overrides suspects panics feed bell records beats history
-- ARGV
--   checker    string   who votes
--   ballots    bytes    lines of id, tab, life, tab, finding: unhealthy, healthy, none; bound: the caller names at most 200
--   ttl_ms     int      how long it counts, in lease time; 0: it leaves
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   VOTED live:[string] joined:int   the checkers that count, sorted; 1 if the caller did not count before: what it said may be lost
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include checkers_update
-- @include assigned_checkers
-- @include votes_update
-- @include votes_count
-- @include votes_tidy
-- @include mark_unhealthy

local now = now_us(args.now)

local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
local live, counts, joined = checkers_update(keys, clock, args.checker, args.ttl_ms)
for id, life, finding in string.gmatch(args.ballots, '([^\t\n]+)\t(%d+)\t(%l+)') do
  local entry = instance_entry(keys, id)
  if entry and entry.life == life then
    local votes = votes_update(keys, id, life, counts, args.checker, finding)
    local verdict = votes_count(votes, assigned_checkers(live, id))
    if verdict ~= nil then
      mark_unhealthy(keys, now, id, entry, verdict)
    end
  elseif not entry then
    redis.call('HDEL', keys.votes, id)
  end
end
votes_tidy(keys)
return { 'VOTED', live, joined }
