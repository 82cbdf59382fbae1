#!lua
-- An operator takes a life of a server out of the ledger, whatever discovery says: its capacity, its people and its gap
-- leave together, and nothing of this life is taken any more.
--
-- Called until nobody remains: the people that it had let in are let out one batch after the other, and stand where
-- they stood if they come back within ten minutes. Another life of the server stays.
--
-- KEYS @waitingroom
--   world servers known pending pending_at people inside ended
-- ARGV
--   server  string  server id
--   life    string  the life that ended
--   count   int     bound: people let out in one call
--   now     int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   DROPPED remaining:int   how many people are still to be let out
-- FLAGS idempotent

-- @include now_us
-- @include server_end

return { 'DROPPED', (server_end(keys, now_us(args.now), args.server, args.life, args.count)) }
