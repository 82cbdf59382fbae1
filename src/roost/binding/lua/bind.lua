#!lua
-- Place a user who has no living owner onto this life of a server, which the caller chose. It must take new users, have
-- room and be of `version`; else nobody is placed, and the reply says why. Whoever has an owner keeps it, as in `resolve`.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type         string  service type
--   user         string  user id
--   server       string  server id
--   life         string  of the server
--   above        int     the highest epoch that the caller has seen; 0: none
--   version      string  that the server must have; empty: any
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   BOUND server_id:string life:string epoch:int previous:int              has a living owner, perhaps another
--   PLACED server_id:string life:string epoch:int previous:int why:string  is held there from now on
--   MOVING server_id:string life:string epoch:int left_ms:int              is on the move for so long at most
--   NO_SERVER why:string                                                   this life is none registered, none willing or all full; version: it has another
-- FLAGS idempotent

-- @include partition_clock
-- @include record_read
-- @include server_live
-- @include epoch_above
-- @include grant

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local record = record_read(keys, args.type, args.user)
if record.st == 'M' and record.dt > ctx.clock then
  return { 'MOVING', record.s, record.l, record.e, record.dt - ctx.clock }
end
local epoch = epoch_above(record, args.above, ctx.now)
if server_live(keys, ctx, args.type, record.s, record.l) then
  if record.st ~= 'M' and args.above <= record.e then
    return { 'BOUND', record.s, record.l, record.e, record.p }
  end
  local why = record.st == 'M' and 'move-expired' or 'seen'
  grant(keys, ctx, record, record.s, record.l, epoch, why)
  return { 'PLACED', record.s, record.l, epoch, record.e, why }
end
local row = server_live(keys, ctx, args.type, args.server, args.life)
if not row then
  return { 'NO_SERVER', 'none registered' }
end
if row.open ~= '1' then
  return { 'NO_SERVER', 'none willing' }
end
if args.version ~= '' and row.version ~= args.version then
  return { 'NO_SERVER', 'version' }
end
if row.capacity > 0 and redis.call('ZCARD', keys.binders .. args.type .. ':' .. args.server .. ':' .. args.life) >= row.capacity then
  return { 'NO_SERVER', 'all full' }
end
local why = record.st == '' and 'new' or record.st == 'R' and 'return' or 'failover'
grant(keys, ctx, record, args.server, args.life, epoch, why)
return { 'PLACED', args.server, args.life, epoch, record.e, why }
