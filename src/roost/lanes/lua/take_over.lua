#!lua
-- Write the first entry of a new owner, above everything that stands in the log: from here on no earlier owner can append.
--
-- KEYS @lanes
--   leader log tail snapshot
-- ARGV
--   holder  string  who holds the shard's lease
--   epoch   string  under which epoch
--   floor   int     the last number that the owner knows to be used, here or in the database
--   batch   bytes   the entry: one command
-- REPLY
--   TAKEN seq:int last:int previous:string  it has this number; before it the log ended with `last` (0: it was empty)
--   NOT_LEADING                             the lease is another's
-- FLAGS idempotent

-- @include int
-- @include leads

if not leads(keys, args.holder, args.epoch) then
  return { 'NOT_LEADING' }
end
local kept = redis.call('GET', keys.tail) or ''
local epoch, first, last = string.match(kept, '^(%d+)-(%d+):(%d+)$')
if epoch == args.epoch and first == last then
  local newest = redis.call('XRANGE', keys.log, epoch .. '-' .. first, epoch .. '-' .. first)[1]
  if newest and newest[2][5] == 'p' then -- the call is repeated: other entries of one command have no such field
    local previous = newest[2][6]
    return { 'TAKEN', last, string.match(previous, ':(%d+)$') or '0', previous }
  end
end
local used = tonumber(last or redis.call('HGET', keys.snapshot, '@seq') or '0')
local seq = int(math.max(used, args.floor) + 1)
local id = args.epoch .. '-' .. seq
redis.call('XADD', keys.log, id, 'n', 1, 'b', args.batch, 'p', kept)
local tail = id .. ':' .. seq
redis.call('SET', keys.tail, tail)
return { 'TAKEN', seq, int(used), kept }
