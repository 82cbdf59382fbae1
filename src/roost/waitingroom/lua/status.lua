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
--   STATUSES found:[string]   for each user what `person_status` says: a word and its fields, with tabs between
-- FLAGS idempotent

-- @include now_us
-- @include person_status

local forfeit, period_ms, burst = args.forfeit, args.period_ms, args.burst
local now = now_us(args.now)

local found = {}
for _, user in ipairs(args.users) do
  found[#found + 1] = table.concat(person_status(keys, user, now, forfeit, period_ms, burst), '\t')
end
return { 'STATUSES', found }
