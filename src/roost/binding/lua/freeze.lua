#!lua
-- The first step of a move: mark a user as on the move to a life of another server, and take a seat there.
--
-- The mark ends by itself: after that any reader gives the user back to its owner, under a new epoch. Who asks never serves
-- again under the present epoch, whatever the answer says or if none comes: it renews. Repeated with the same move and target
-- it says the same.
--
-- KEYS @binding
--   partition users servers binders ranking
-- ARGV
--   type           string  service type
--   user           string  user id
--   server         string  server id of the owner
--   life           string  of the owner
--   epoch          int     under which it holds the user
--   move           string  id of the move
--   target_server  string  server id of who shall take the user; another one
--   target_life    string  and life
--   ttl_ms         int     how long the mark holds, in lease time
--   max_step_ms    int     the most that this look may add to the lease clock
--   now            int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   FROZEN epoch:int              on the move; the epoch that the target gets
--   NOT_OWNER fields:[string]     who asks does not hold the user under this epoch, or has no lease; the record as it is
--   NO_ROOM why:string            the target is none registered, none willing or all full
-- FLAGS idempotent

-- @include int
-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include epoch_above
-- @include seat

local ctx = partition_clock(keys, args.now, args.max_step_ms)
local record = record_read(keys, args.type, args.user)
local is_mine = record.s == args.server and record.l == args.life and record.e == args.epoch
if is_mine and record.st == 'M' and record.m == args.move and record.d == args.target_server
  and record.dl == args.target_life then
  return { 'FROZEN', record.ne }
end
if not is_mine or record.st ~= 'A' or not server_live(keys, ctx, args.type, args.server, args.life) then
  return { 'NOT_OWNER', record_list(record) }
end
local row = server_live(keys, ctx, args.type, args.target_server, args.target_life)
if not row then
  return { 'NO_ROOM', 'none registered' }
end
if row.open ~= '1' then
  return { 'NO_ROOM', 'none willing' }
end
local binders = keys.binders .. args.type .. ':' .. args.target_server .. ':' .. args.target_life
if row.capacity > 0 and redis.call('ZCARD', binders) >= row.capacity then
  return { 'NO_ROOM', 'all full' }
end
local epoch = epoch_above(record, 0, ctx.now)
redis.call('HSET', keys.users .. args.type .. ':' .. args.user, 'st', 'M', 'd', args.target_server, 'dl', args.target_life,
  'ne', int(epoch), 'm', args.move, 'dt', int(ctx.clock + args.ttl_ms))
seat(keys, ctx, record, args.target_server, args.target_life, true)
return { 'FROZEN', epoch }
