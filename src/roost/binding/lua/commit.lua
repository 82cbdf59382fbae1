#!lua
-- The last step of moves to one server, by that server, which has claimed the rows and loaded the users: from now on it
-- holds them. Each is judged alone, as if the others had not been asked for.
--
-- Only while the mark is the one of this move, and the target is alive. A mark whose time is over and that nobody has
-- resolved yet is good. After the owner took the user back this changes nothing. Repeated it says the same.
-- `committed`: the target holds the user; `gone`: there is no such move, or the target has no lease.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type         string  service type
--   server       string  server id of the target
--   life         string  of the target
--   max_step_ms  int     the most that this look may add to the lease clock
--   now          int     test override of the server's clock in µs; empty outside tests
--   asked...     string  user id, id of the move, the epoch that `freeze` gave, in turn; bound: 32 users
-- REPLY
--   COMMITS answers:[string] records:[string]   for each user `committed` or `gone`; the seven fields of each record that is gone
-- FLAGS idempotent

-- @include partition_clock
-- @include record_read
-- @include record_list
-- @include server_live
-- @include grant
-- @include rank_noted

local ctx = partition_clock(keys, args.now, args.max_step_ms)
ctx.unranked = {}
local is_alive = server_live(keys, ctx, args.type, args.server, args.life)
local answers, records = {}, {}
for at = 1, #args.asked, 3 do
  local move, epoch = args.asked[at + 1], tonumber(args.asked[at + 2])
  local record = record_read(keys, args.type, args.asked[at])
  local is_done = record.st == 'A' and record.s == args.server and record.l == args.life and record.e == epoch
  local is_this = record.st == 'M' and record.m == move and record.d == args.server and record.dl == args.life
    and record.ne == epoch
  if is_this and is_alive then
    grant(keys, ctx, record, args.server, args.life, record.ne, 'moved')
    is_done = true
  end
  answers[#answers + 1] = is_done and 'committed' or 'gone'
  if not is_done then
    for _, field in ipairs(record_list(record)) do
      records[#records + 1] = field
    end
  end
end
rank_noted(keys, ctx, args.type)
return { 'COMMITS', answers, records }
