#!lua
-- The controller keeps how far a job is, with whom it has moved; only the leader of the scope may. It may turn the state as
-- well, if it is still the one that the controller knows: what an operator ordered meanwhile stands.
--
-- KEYS @drain
--   leader active busy job moved feed bell
-- ARGV
--   holder    string  who leads
--   epoch     string  under which grant
--   id        string  of the job
--   progress  bytes   how far it is
--   known     string  the state that the controller knows
--   to        string  the state to be; the same: it is not turned
--   why       string  of the new state
--   free      int     1: no more users are moved, its servers may have another job
--   ended     int     1: nothing is left to be done
--   now       int     test override of the server's clock in µs; empty outside tests
--   changes...  string  `+` or `-` and `userId<tab>source`: moved, or brought back; at most 2000
-- REPLY
--   SAVED state:string why:string   as it is now
--   DEPOSED                         another leads, or nobody: nothing was written
--   UNKNOWN                         there is no such job
-- FLAGS idempotent

-- @include leads
-- @include now_us
-- @include int
-- @include job_news

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
local key = keys.job .. args.id
local kept = redis.call('HMGET', key, 'state', 'why', 'type', 'parts')
local state, why = kept[1], kept[2]
if not state then
  return { 'UNKNOWN' }
end
redis.call('HSET', key, 'progress', args.progress)
for _, one in ipairs(args.changes) do
  if string.sub(one, 1, 1) == '+' then
    redis.call('ZADD', keys.moved .. args.id, 0, string.sub(one, 2))
  else
    redis.call('ZREM', keys.moved .. args.id, string.sub(one, 2))
  end
end
if state ~= args.known then
  return { 'SAVED', state, why }
end
if args.to ~= args.known then
  state, why = args.to, args.why
  redis.call('HSET', key, 'state', state, 'why', why)
  job_news(keys, now_us(args.now), args.id, state, why, kept[3], kept[4])
end
if args.free == 1 then
  for server in string.gmatch(kept[4], '(%S+):%S+') do
    if redis.call('HGET', keys.busy, kept[3] .. ':' .. server) == args.id then
      redis.call('HDEL', keys.busy, kept[3] .. ':' .. server)
    end
  end
end
if args.ended == 1 then
  redis.call('SREM', keys.active, args.id)
  redis.call('HSET', key, 'ended', int(now_us(args.now)))
end
return { 'SAVED', state, why }
