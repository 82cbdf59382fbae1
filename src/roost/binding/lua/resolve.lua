#!lua
-- Who holds a user. Whoever has no living owner is placed, in this step; the seat is counted at once.
--
-- A mark of a move that has ended is resolved by whoever finds it: the user goes on where they were, under a new epoch, or
-- is placed if that server is dead. A caller that has seen a later epoch than the record's asks a store that lost a grant:
-- the owner is granted anew above it, or the caller would drop every reply.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type         string  service type
--   user         string  user id
--   above        int     the highest epoch that the caller has seen; 0: none
--   version      string  that the server must have; empty: any
--   place        int     1: place whoever has no owner; 0: only say so
--   draw         int     random, 0 to 2^48: picks the servers that are compared
--   slow_ms      int     how long a server is new
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   BOUND server_id:string life:string epoch:int previous:int              has a living owner
--   PLACED server_id:string life:string epoch:int previous:int why:string  has one from now on, or the same under a new epoch
--   MOVING server_id:string life:string epoch:int left_ms:int              is on the move for so long at most; ask again
--   NO_SERVER why:string                                                   nobody takes them: none registered, none willing, all full, version; or unplaced
-- FLAGS idempotent

-- @include partition_clock
-- @include record_read
-- @include server_live

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local record = record_read(keys, args.type, args.user)
if record.st == 'M' and record.dt > ctx.clock then
  return { 'MOVING', record.s, record.l, record.e, record.dt - ctx.clock }
end
if server_live(keys, ctx, args.type, record.s, record.l) then
  if record.st ~= 'M' and args.above <= record.e then
    return { 'BOUND', record.s, record.l, record.e, record.p }
  end
  -- @include epoch_above
  -- @include grant
  local epoch, why = epoch_above(record, args.above, ctx.now), record.st == 'M' and 'move-expired' or 'seen'
  grant(keys, ctx, record, record.s, record.l, epoch, why)
  return { 'PLACED', record.s, record.l, epoch, record.e, why }
end
if args.place == 1 then
  -- @include place
  ctx.draw, ctx.slow_ms = args.draw, args.slow_ms
  local why = record.st == '' and 'new' or record.st == 'R' and 'return' or 'failover'
  local id, life, epoch = place(keys, ctx, record, args.version, args.above, why)
  if id then
    return { 'PLACED', id, life, epoch, record.e, why }
  end
  return { 'NO_SERVER', life }
end
return { 'NO_SERVER', 'unplaced' }
