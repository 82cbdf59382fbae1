#!lua
-- The row of the database names another living owner than the map: give the user back to it, under a new epoch. Only while
-- the map is as it was judged.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type          string  service type
--   user          string  user id
--   wrong_server  string  whom the map names: server id
--   wrong_life    string  and life
--   epoch         int     under which
--   right_server  string  whom the row names: server id
--   right_life    string  and life
--   above         int     the epoch of the row: the new one is above it
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPAIRED epoch:int         the row's owner holds the user, under this epoch
--   DEAD                       the row's owner is not alive: the map's may claim the row
--   CHANGED fields:[string]    the map is not as it was judged; the record as it is
-- FLAGS idempotent

-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include epoch_above
-- @include grant

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local record = record_read(keys, args.type, args.user)
if record.s ~= args.wrong_server or record.l ~= args.wrong_life or record.e ~= args.epoch then
  return { 'CHANGED', record_list(record) }
end
if not server_live(keys, ctx, args.type, args.right_server, args.right_life) then
  return { 'DEAD' }
end
local epoch = epoch_above(record, args.above, ctx.now)
grant(keys, ctx, record, args.right_server, args.right_life, epoch, 'repaired')
return { 'REPAIRED', epoch }
