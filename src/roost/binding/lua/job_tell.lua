#!lua
-- Keep what a gate has counted for a job, in place of what it told before.
--
-- KEYS @drain
--   active reports
-- ARGV
--   id      string  of the job
--   gate    string  name of the gate
--   report  bytes   what it counted
--   most    int     gates that may report
-- REPLY
--   TOLD   it is kept
--   LATE   the job has ended, or is not known: nobody waits for it
--   FULL   too many gates have reported
-- FLAGS idempotent

if redis.call('SISMEMBER', keys.active, args.id) == 0 then
  return { 'LATE' }
end
local key = keys.reports .. args.id
if redis.call('HEXISTS', key, args.gate) == 0 and redis.call('HLEN', key) >= args.most then
  return { 'FULL' }
end
redis.call('HSET', key, args.gate, args.report)
return { 'TOLD' }
