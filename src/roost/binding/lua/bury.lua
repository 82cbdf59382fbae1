#!lua
-- A life of a server is over, for good.
--
-- KEYS @binding
--   partition servers binders ranking buried orphans
-- ARGV
--   type         string  service type
--   server       string  server id
--   life         string  that has ended
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   BURIED users:int   whom it held; they are placed anew
-- FLAGS idempotent

-- @include partition_clock
-- @include life_end

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local users = life_end(keys, ctx, args.type, args.server, args.life)
return { 'BURIED', users }
