#!lua
-- The first step of moves from one server to another: mark each user as on the move, and take a seat there. Each is judged
-- alone, as if the others had not been asked for.
--
-- A mark ends by itself: after that any reader gives the user back to its owner, under a new epoch. Who asks never serves
-- again under the present epoch, whatever the answer says or if none comes: it renews. Repeated with the same move and target
-- it says the same.
--
-- A user who is not on the move: `not owner` (who asks does not hold the user under this epoch, or has no lease; `records` has
-- the seven fields of each such record), or why the target takes nobody: none registered, none willing or all full.
--
-- KEYS @binding
--   partition users servers binders ranking
-- ARGV
--   type           string  service type
--   server         string  server id of the owner
--   life           string  of the owner
--   target_server  string  server id of who shall take the users; another one
--   target_life    string  and life
--   ttl_ms         int     how long the marks hold, in lease time
--   max_step_ms    int     the most that this look may add to the lease clock
--   now            int     test override of the server's clock in µs; empty outside tests
--   asked...       string  user id, the epoch under which the owner holds the user, id of the move, in turn; bound: 32 users
-- REPLY
--   FREEZES answers:[string] records:[string]   for each user the epoch that the target gets, or why not
-- FLAGS idempotent

-- @include int
-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include epoch_above
-- @include seat
-- @include rank_noted

local ctx = partition_clock(keys, args.now, args.max_step_ms)
ctx.unranked = {}
local is_alive = server_live(keys, ctx, args.type, args.server, args.life)
local row = server_live(keys, ctx, args.type, args.target_server, args.target_life)
local binders = keys.binders .. args.type .. ':' .. args.target_server .. ':' .. args.target_life
local closed = not row and 'none registered' or row.open ~= '1' and 'none willing'
local answers, records = {}, {}
for at = 1, #args.asked, 3 do
  local move = args.asked[at + 2]
  local record = record_read(keys, args.type, args.asked[at])
  local is_mine = record.s == args.server and record.l == args.life and record.e == tonumber(args.asked[at + 1])
  local answer
  if is_mine and record.st == 'M' and record.m == move and record.d == args.target_server
    and record.dl == args.target_life then
    answer = int(record.ne)
  elseif not is_mine or record.st ~= 'A' or not is_alive then
    answer = 'not owner'
    for _, field in ipairs(record_list(record)) do
      records[#records + 1] = field
    end
  else
    answer = closed or row.capacity > 0 and redis.call('ZCARD', binders) >= row.capacity and 'all full'
    if not answer then
      answer = int(epoch_above(record, 0, ctx.now))
      redis.call('HSET', keys.users .. args.type .. ':' .. record.user, 'st', 'M', 'd', args.target_server,
        'dl', args.target_life, 'ne', answer, 'm', move, 'dt', int(ctx.clock + args.ttl_ms))
      seat(keys, ctx, record, args.target_server, args.target_life, true)
    end
  end
  answers[#answers + 1] = answer
end
rank_noted(keys, ctx, args.type)
return { 'FREEZES', answers, records }
