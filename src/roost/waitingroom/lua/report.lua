#!lua
-- A game server says how many people are on it, and which is the last of its consumes that this counts.
--
-- Reports may be late, doubled or in any order: an older one than the last is not taken, and each that is taken gives
-- an upper bound of the people inside. A server that counts more consumes than the store knows proves that the
-- store lost writes: then nobody is admitted until every server has reported again. The answer names people who are
-- inside by what the store knows and ask to come in: the server releases those whom it does not have.
--
-- Which lives of servers there are the leader writes, see `sync`: a report of any other waits apart and changes nothing.
-- Everybody whom a former life had let in is out: every report lets out some of them.
--
-- KEYS @waitingroom
--   world servers known pending pending_at people inside ended asking
-- ARGV
--   server    string  server id
--   life      string  its life in discovery
--   number    string  of this report, growing in a life
--   capacity  int     people it can take
--   reported  int     people on it
--   counted   int     ordinal of the last consume that `reported` counts
--   url       string  where players connect
--   now       int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPORTED consumed:int asking:[string]   taken; ordinal of the last consume that the store knows; user and connection in turn, at most 100 people
--   PENDING                                 the leader has not written this life yet: it counts as soon as it does
--   STALE                                   a later report of this life was taken
--   FENCED life:int                         this life has ended
-- FLAGS idempotent

-- @include now_us
-- @include world_open
-- @include server_row
-- @include server_known
-- @include server_keep
-- @include most_inside
-- @include life_ended
-- @include lives_end
-- @include server_asked
-- @include pending_forget

local id, life, now = args.server, args.life, now_us(args.now)

local ctx = world_open(keys, now)
if life_ended(keys, id, life) then
  redis.call('EXPIRE', keys.ended .. id, 3600) -- known for as long as it goes on reporting
  return { 'FENCED', life }
end
local known, open = server_known(keys, id)
local given = { life = life, capacity = args.capacity, reported = args.reported, counted = args.counted,
  consumed = args.counted, number = args.number, doubt = 0, open = open or 0, url = args.url }
if known ~= life then
  -- @include report_pending
  report_pending(keys, ctx, id, given)
  return { 'PENDING' }
end
lives_end(keys, now, id)
local row = server_row(keys, id)
if row then
  if tonumber(args.number) <= tonumber(row.number) then
    return { 'STALE' }
  end
  given.consumed = math.max(row.consumed, args.counted)
  if args.counted > row.consumed then
    -- @include ledger_doubt
    ledger_doubt(keys, id)
  end
  if args.reported > most_inside(row) then
    redis.call('HINCRBY', keys.world, 'drift', args.reported - most_inside(row))
  end
end
server_keep(keys, id, row, given)
pending_forget(keys, id) -- of another life; one that is yet to be shown reports again
return { 'REPORTED', given.consumed, server_asked(keys, id, life) }
