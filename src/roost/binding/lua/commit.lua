#!lua
-- The last step of a move, by its target, which has claimed the row and loaded the user: from now on it holds the user.
--
-- Only while the mark is the one of this move, and the target is alive. A mark whose time is over and that nobody has
-- resolved yet is good. After the owner took the user back this changes nothing. Repeated it says the same.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type         string  service type
--   user         string  user id
--   move         string  id of the move
--   server       string  server id of the target
--   life         string  of the target
--   epoch        int     that `freeze` gave
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   COMMITTED                the target holds the user
--   GONE fields:[string]     there is no such move, or the target has no lease; the record as it is
-- FLAGS idempotent

-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include grant

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local record = record_read(keys, args.type, args.user)
if record.st == 'A' and record.s == args.server and record.l == args.life and record.e == args.epoch then
  return { 'COMMITTED' }
end
local is_this = record.st == 'M' and record.m == args.move and record.d == args.server and record.dl == args.life
  and record.ne == args.epoch
if not is_this or not server_live(keys, ctx, args.type, args.server, args.life) then
  return { 'GONE', record_list(record) }
end
grant(keys, ctx, record, args.server, args.life, record.ne, 'moved')
return { 'COMMITTED' }
