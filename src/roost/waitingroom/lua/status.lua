#!lua
-- What people have in a world, and that they are still there. Asking changes nobody's order.
--
-- Many at once: all who ask a gateway in one turn of its loop are one call, which costs the store and the gateway a
-- fraction of as many calls.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   servers   hash     server id → its row in the ledger
--   offers    zset     user → lease time at which the ticket ends
--   grace     zset     user → lease time until which a place inside is held
--   waiting*  zset     per class: user → place in the order
--   away*     zset     per class: user → place, of those who are not there just now
--   people*   hash     per user: state and what else is known
--   granted*  string   per ticket id: who it is for, JSON
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

local world, servers, offers, grace, waiting, away = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local people, granted = KEYS[7], KEYS[8]
local forfeit, period_ms, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_us(ARGV[4])

local found = {}
for at = 5, #ARGV do
  found[#found + 1] = table.concat(person_status(world, servers, offers, grace, waiting, away, people, granted,
    ARGV[at], now, forfeit, period_ms, burst), '\t')
end
return { 'STATUSES', found }
