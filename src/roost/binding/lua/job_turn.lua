#!lua
-- An operator turns a job into another state. A rollback takes the job's servers again: they are free from the moment that
-- nobody is moved any more.
--
-- KEYS @drain
--   active busy job feed bell
-- ARGV
--   id          string  of the job
--   to          string  the state to be
--   why         string  for people
--   servers     string  ids of its servers, with spaces between: taken again; empty: none
--   now         int     test override of the server's clock in µs; empty outside tests
--   allowed...  string  states from which this may be
-- REPLY
--   TURNED                so it is, or was already
--   NOT_SO state:string   it is in another state
--   RUNNING id:string     another job has one of the servers by now
--   UNKNOWN               there is no such job
-- FLAGS idempotent

-- @include now_us
-- @include job_news

local kept = redis.call('HMGET', keys.job .. args.id, 'state', 'type', 'parts')
local state, type = kept[1], kept[2]
if not state then
  return { 'UNKNOWN' }
end
if state == args.to then
  return { 'TURNED' }
end
local may = false
for _, allowed in ipairs(args.allowed) do
  may = may or allowed == state
end
if not may then
  return { 'NOT_SO', state }
end
local names = {}
for server in string.gmatch(args.servers, '%S+') do
  names[#names + 1] = type .. ':' .. server
  local other = redis.call('HGET', keys.busy, names[#names])
  if other and other ~= args.id then
    return { 'RUNNING', other }
  end
end
for _, name in ipairs(names) do
  redis.call('HSET', keys.busy, name, args.id)
end
redis.call('SADD', keys.active, args.id)
redis.call('HSET', keys.job .. args.id, 'state', args.to, 'why', args.why, 'ended', '0')
job_news(keys, now_us(args.now), args.id, args.to, args.why, type, kept[3])
return { 'TURNED' }
