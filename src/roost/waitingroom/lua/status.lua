#!lua
-- What people have in a world, and that they are still there. Asking changes nobody's order.
--
-- Many at once: all who ask a gateway in one turn of its loop are one call, which costs the store and the gateway a
-- fraction of as many calls.
--
-- KEYS @waitingroom
--   world servers offers grace waiting away people granted
-- ARGV
--   forfeit    int     no-shows that cost the place; 0: none does
--   period_ms  int     rate limit: time between two calls of one person; 0: none
--   burst      int     calls at once
--   now        int     test override of the server's clock in µs; empty outside tests
--   users...   string  user ids; bound: 100
-- REPLY
--   STATUSES found:[string]   for each user LIMITED retry_ms, or what `person_status` says: a word and its fields, with tabs between
-- FLAGS idempotent

-- @include now_us
-- @include join_fields
-- @include gcra
-- @include person_kept
-- @include person_status

-- A part of what `world_open` reads, and how fast the base class moves: asking about a world does not make it.
local kept = redis.call('HMGET', keys.world, 'clock_ms', 'opens_at', 'fast', 'slow')
local ctx = { now = now_us(args.now), clock = tonumber(kept[1] or '0'), opens_at = tonumber(kept[2] or '0'),
  speeds = { [''] = { fast = tonumber(kept[3] or '0'), slow = tonumber(kept[4] or '0') } },
  forfeit = args.forfeit }
local found = {}
for at, user in ipairs(args.users) do
  local person = person_kept(keys, user)
  local retry_ms, tat = gcra(person.tat, ctx.now, args.period_ms, args.burst)
  found[at] = join_fields(retry_ms > 0 and { 'LIMITED', retry_ms } or person_status(keys, ctx, user, person, tat))
end
return { 'STATUSES', found }
