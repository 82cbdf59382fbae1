#!lua
-- Start a job, unless another one moves users of one of its servers: then that one is told. The oldest jobs of more than
-- two hundred are forgotten.
--
-- KEYS @drain
--   jobs active busy job moved reports feed bell
-- ARGV
--   id          string  of the job
--   type        string  service type
--   parts       string  `serverId:life` of the servers, with spaces between
--   targets     string  ids of the servers that may take them, with spaces between; empty: any
--   version     string  of these servers; empty: any
--   order       bytes   what it is to do
--   progress    bytes   how far it is
--   most        int     jobs that may be active at once
--   now         int     test override of the server's clock in µs; empty outside tests
--   servers...  string  ids of the servers; at most 64
-- REPLY
--   STARTED made:int   when it was made, µs
--   RUNNING id:string  this job has one of the servers
--   TOO_MANY           too many jobs are active
-- FLAGS idempotent

-- @include now_us
-- @include int
-- @include job_news

local made = redis.call('HGET', keys.job .. args.id, 'made')
if made then
  return { 'STARTED', made }
end
for _, server in ipairs(args.servers) do
  local other = redis.call('HGET', keys.busy, args.type .. ':' .. server)
  if other then
    return { 'RUNNING', other }
  end
end
if redis.call('SCARD', keys.active) >= args.most then
  return { 'TOO_MANY' }
end
local started = now_us(args.now)
local now = int(started)
for _, server in ipairs(args.servers) do
  redis.call('HSET', keys.busy, args.type .. ':' .. server, args.id)
end
redis.call('HSET', keys.job .. args.id, 'type', args.type, 'parts', args.parts, 'targets', args.targets,
  'version', args.version, 'order', args.order, 'progress', args.progress, 'state', 'running', 'why', '', 'made', now,
  'ended', '0')
redis.call('ZADD', keys.jobs, now, args.id)
redis.call('SADD', keys.active, args.id)
for _, old in ipairs(redis.call('ZRANGE', keys.jobs, 0, math.min(10, redis.call('ZCARD', keys.jobs) - 200) - 1)) do
  if redis.call('ZCARD', keys.jobs) > 200 and redis.call('SISMEMBER', keys.active, old) == 0 then
    redis.call('ZREM', keys.jobs, old)
    redis.call('DEL', keys.job .. old, keys.moved .. old, keys.reports .. old)
  end
end
job_news(keys, started, args.id, 'started', '', args.type, args.parts)
return { 'STARTED', now }
