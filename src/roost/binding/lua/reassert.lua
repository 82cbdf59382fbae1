#!lua
-- After a failover an owner says again whom it holds, and under which epochs. What the store lost is restored: a user without
-- a record, or with an older one than the owner's. A later one of somebody else, and a release under that epoch or a later one,
-- stand.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type         string  service type
--   server       string  server id of the owner
--   life         string  of the owner
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
--   held...      string  user id and epoch, in turn; bound: 500 users
-- REPLY
--   REASSERTED found:[string]   for each user the seven fields of their record; those that name the owner are kept
-- FLAGS idempotent bulk

-- @include int
-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include grant

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local is_alive = server_live(keys, ctx, args.type, args.server, args.life)
local found = {}
for at = 1, #args.held, 2 do
  local user, epoch = args.held[at], tonumber(args.held[at + 1])
  local record = record_read(keys, args.type, user)
  if is_alive and record.e < epoch then
    grant(keys, ctx, record, args.server, args.life, epoch, 'reasserted')
    record = record_read(keys, args.type, user)
  end
  for _, field in ipairs(record_list(record)) do
    found[#found + 1] = field
  end
end
return { 'REASSERTED', found }
