#!lua
-- The owner, or whoever was named for a user that nobody holds, gets a new epoch: after a lapse, or where the row of the
-- database stands at or above the present one, or because a move did not come about: its mark ends here, the seat at the
-- target is given back, and the new epoch is above what the target was promised. It must be alive here: beat first.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type         string  service type
--   user         string  user id
--   server       string  server id of who asks
--   life         string  of who asks
--   above        int     the new epoch is above this one
--   why          string  renewed, or returned: from a move; move-expired: only if there is a mark, and its time is over
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   RENEWED epoch:int previous:int   held under this epoch; the one before it
--   NOT_OWNER fields:[string]        another holds the user, who asks has no lease, or the mark is not over; the record
-- FLAGS idempotent

-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include epoch_above
-- @include grant

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local record = record_read(keys, args.type, args.user)
local is_mine = record.s == '' or (record.s == args.server and record.l == args.life)
local is_due = args.why ~= 'move-expired' or (record.st == 'M' and record.dt <= ctx.clock)
if not is_mine or not is_due or not server_live(keys, ctx, args.type, args.server, args.life) then
  return { 'NOT_OWNER', record_list(record) }
end
local epoch = epoch_above(record, args.above, ctx.now)
grant(keys, ctx, record, args.server, args.life, epoch, args.why)
return { 'RENEWED', epoch, record.e }
