#!lua
-- Keep the state of a shard after command `seq`: the parts that changed since the snapshot that it builds on (`base`).
--
-- Parts that are too large for one call are staged, by calls with `commit` 0, and become visible all at once with the
-- last call: who reads the snapshot sees the one before or all of this one. Only the owner whose epoch the newest
-- entry of the log has may write it. Parts of which the caller does not know whether they arrived are sent again with the next.
--
-- KEYS @lanes
--   log snapshot staged
-- ARGV
--   epoch     string  of the owner
--   seq       string  the last command that the state includes
--   base      string  `<epoch>-<seq>` of the snapshot that is kept; empty: these are all parts, drop what there was
--   digest    bytes   of the whole state
--   ids       bytes   state of the id clock
--   before    int     how many parts were staged by the calls before
--   commit    int     1: this is the last call
--   parts...  bytes   name and content of parts, in turn; empty content: the part is gone. Bound: some 512 KB
-- REPLY
--   SAVED                     it is kept
--   STAGED                    these parts are staged, nothing is visible yet
--   FENCED epoch:int          another owns the shard, by its log; 0: the log is gone
--   OTHER_BASE at:string      what is kept is not the base, or later: send all parts
--   UNSTAGED                  the parts that were staged are not there any more: send them again
-- FLAGS idempotent

-- @include log_epoch

local logged = log_epoch(keys)
if logged ~= args.epoch then
  return { 'FENCED', logged }
end
local at = args.epoch .. '-' .. args.seq
local mark = redis.call('HMGET', keys.snapshot, '@epoch', '@seq')
local kept = mark[1] and mark[1] .. '-' .. mark[2] or ''
if kept == at then
  return { 'SAVED' }
end
if (args.base ~= '' and args.base ~= kept) or (mark[1] == args.epoch and tonumber(mark[2]) > tonumber(args.seq)) then
  return { 'OTHER_BASE', kept }
end
if args.before == 0 or redis.call('HGET', keys.staged, '@at') ~= at then
  if args.before > 0 then
    return { 'UNSTAGED' }
  end
  redis.call('DEL', keys.staged)
  redis.call('HSET', keys.staged, '@at', at)
end
for part = 1, #args.parts, 2 do
  redis.call('HSET', keys.staged, args.parts[part], args.parts[part + 1])
end
redis.call('EXPIRE', keys.staged, 3600)
if args.commit == 0 then
  return { 'STAGED' }
end
if redis.call('HLEN', keys.staged) ~= 1 + args.before + #args.parts / 2 then
  return { 'UNSTAGED' }
end
if args.base == '' then
  redis.call('DEL', keys.snapshot)
end
local staged = redis.call('HGETALL', keys.staged)
for part = 1, #staged, 2 do
  if staged[part + 1] == '' then
    redis.call('HDEL', keys.snapshot, staged[part])
  elseif staged[part] ~= '@at' then
    redis.call('HSET', keys.snapshot, staged[part], staged[part + 1])
  end
end
redis.call('HSET', keys.snapshot, '@epoch', args.epoch, '@seq', args.seq, '@digest', args.digest, '@ids', args.ids)
redis.call('DEL', keys.staged)
return { 'SAVED' }
