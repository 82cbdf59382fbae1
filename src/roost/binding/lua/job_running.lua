#!lua flags=no-writes
-- Every job that has not ended, at most as many as may be active.
--
-- KEYS @drain
--   active job
-- ARGV
-- REPLY
--   JOBS jobs:[string]   id, type, parts, state, made, targets and version of each, in turn
-- FLAGS idempotent

local jobs = {}
for _, id in ipairs(redis.call('SMEMBERS', keys.active)) do
  local kept = redis.call('HMGET', keys.job .. id, 'type', 'parts', 'state', 'made', 'targets', 'version')
  if kept[1] then
    jobs[#jobs + 1] = id
    for at = 1, 6 do
      jobs[#jobs + 1] = kept[at]
    end
  end
end
return { 'JOBS', jobs }
