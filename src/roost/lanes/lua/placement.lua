#!lua
-- Change where a symbol is, or which selector places those that are not in the table; each change is a version and an entry
-- of the feed (event, symbol, from, to, move, version).
--
-- select: `to` is the selector, which is set once. pin: the symbol is at `to`. unpin: it is where the selector puts it.
-- begin: it moves `from` a place, which it has or the selector gives it, `to` another. finish: the move is over and the
-- symbol is at `to`: where it went, or, if the move was given up, where it came from. While a symbol moves it is only finished.
-- What is so already is not changed, whatever version is expected: a call that is repeated finds its own work.
--
-- KEYS @placement
--   placement feed bell
-- ARGV
--   action    string  select, pin, unpin, begin or finish
--   symbol    string  which; empty with select
--   from      string  `shard:lane`; only with begin
--   to        string  `shard:lane`, or the selector; not with unpin
--   move      string  id of the move; with begin and finish
--   expected  string  the version that the caller has seen; empty: any
--   now       int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   CHANGED version:int     it is so from this version on
--   UNCHANGED version:int   it was so already
--   CONFLICT version:int    the table is of this version, or does not allow it: look again
-- FLAGS idempotent

-- @include int
-- @include now_us
-- @include feed_append

local action, to = args.action, args.to
local field = action == 'select' and '@selector' or args.symbol
local kept = redis.call('HMGET', keys.placement, '@version', field)
local version, old = tonumber(kept[1] or '0'), kept[2] or ''
local moves_from, moves_to, move = string.match(old, '^(.+)>(%d+:%d+):(.+)$')
local new, is_allowed = to, not move
if action == 'select' then
  is_allowed = old == ''
elseif action == 'unpin' then
  new = ''
elseif action == 'begin' then
  new = args.from .. '>' .. to .. ':' .. args.move
  is_allowed = is_allowed and (old == '' or old == args.from)
elseif action == 'finish' then
  is_allowed = move == args.move and (to == moves_to or to == moves_from)
end
if new == old then
  return { 'UNCHANGED', int(version) }
end
if not is_allowed or (args.expected ~= '' and args.expected ~= int(version)) then
  return { 'CONFLICT', int(version) }
end
version = version + 1
redis.call('HSET', keys.placement, '@version', int(version))
if new == '' then
  redis.call('HDEL', keys.placement, field)
else
  redis.call('HSET', keys.placement, field, new)
end
local from = action == 'begin' and args.from or moves_from or old
feed_append(keys, action, now_us(args.now), 10000, { 'event', action, 'symbol', args.symbol, 'from', from, 'to', to,
  'move', args.move, 'version', int(version) })
return { 'CHANGED', int(version) }
