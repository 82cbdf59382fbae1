#!lua
-- A game server says how many people are on it, and which is the last of its consumes that this counts.
--
-- Reports may be late, doubled or in any order: an older one than the last is not taken, and each that is taken gives
-- an upper bound of the people inside. A server that counts more consumes than the store knows proves that the
-- store lost writes: then nobody is admitted until every server has reported again. The answer names people who are
-- inside by what the store knows and ask to come in: the server releases those whom it does not have.
--
-- Everybody whom a former life had let in is out, also if nobody saw its end: every report lets out some of them.
--
-- KEYS @waitingroom
--   world servers people inside ended asking
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
--   STALE                                   a later report of this life was taken
--   FENCED life:int                         a later life of this server has reported, or this one or a later one has ended
-- FLAGS idempotent

-- @include now_us
-- @include world_open
-- @include server_row
-- @include server_keep
-- @include most_inside
-- @include life_fence
-- @include lives_end
-- @include ledger_doubt
-- @include server_asked

local id, life = args.server, args.life

world_open(keys, now_us(args.now))
local was = server_row(keys, id)
local fence = life_fence(keys, id, life, was)
if fence then
  return { 'FENCED', fence }
end
lives_end(keys, id, life, was)
local row = was and was.life == life and was
if row and tonumber(args.number) <= tonumber(row.number) then
  return { 'STALE' }
end
local consumed = row and row.consumed or args.counted
if args.counted > consumed then
  consumed = args.counted
  ledger_doubt(keys, id)
end
if row and args.reported > most_inside(row) then
  redis.call('HINCRBY', keys.world, 'drift', args.reported - most_inside(row))
end
server_keep(keys, id, was, { life = life, capacity = args.capacity, reported = args.reported, counted = args.counted,
  consumed = consumed, number = args.number, doubt = 0, url = args.url })
return { 'REPORTED', consumed, server_asked(keys, id, life) }
