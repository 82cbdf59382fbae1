#!lua
-- Take the telling of one incident to one receiver: of all processes that saw it, one tells it.
--
-- News are ordered by `at`, the time of the change in discovery's feed: what is older than what was told is told
-- already, and so is the same turn of the same life, whenever a process heard of it. The holder asks again to
-- keep its claim; a claim that ran out is anybody's, because its holder died before it had told.
--
-- KEYS @alerts
--   claims
-- ARGV
--   id        string  digest of the receiver and of the dedup key
--   action    string  trigger or resolve
--   life      string  of the server that it is about
--   at        int     time of the change, µs
--   holder    string  who asks
--   lease_ms  int     how long the claim lasts without being renewed, at most two minutes
--   now       int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   CLAIMED           `holder` tells it
--   HELD left_ms:int  another process is telling it, or something that came before it
--   TOLD              it was told
-- FLAGS idempotent

-- @include now_us
-- @include int

local LONGEST_LEASE_MS = 120000  -- one that lasts longer is of a clock that has stepped back
local key, now_ms = keys.claims .. args.id, math.floor(now_us(args.now) / 1000)

local kept = redis.call('HMGET', key, 'action', 'life', 'at', 'holder', 'until_ms')
local action, life, at, holder = kept[1], kept[2], tonumber(kept[3] or '0'), kept[4]
if action and holder == '' then
  if args.at <= at or (action == args.action and life == args.life) then
    return { 'TOLD' }
  end
elseif action and holder ~= args.holder then
  local left_ms = tonumber(kept[5]) - now_ms
  if left_ms > 0 and left_ms <= LONGEST_LEASE_MS then
    return { 'HELD', left_ms }
  end
  if args.at < at then
    return { 'TOLD' }
  end
end
redis.call('HSET', key, 'action', args.action, 'life', args.life, 'at', int(args.at),
  'holder', args.holder, 'until_ms', int(now_ms + args.lease_ms))
redis.call('EXPIRE', keys.claims .. args.id, 86400)
return { 'CLAIMED' }
