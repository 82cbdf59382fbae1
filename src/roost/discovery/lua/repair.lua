#!lua
-- Compare a part of the index with what it points to, and mend what does not fit.
--
-- Scripts are atomic, so nothing should ever be found; this is for data that a person or a partial
-- restore has damaged, or a version before the suspects were counted has written. Who lost its record or beat ends,
-- and registers again if it lives.
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
-- ARGV
--   cursor     string   where the last part ended; 0 at first
--   count      int      bound: about how many are looked at
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPAIRED cursor:string mended:int  where to go on, and how many did not fit
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include beat_unpack
-- @include instance_end
-- @include panic_update

local now = now_us(args.now)

local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
local mended = 0
local part = redis.call('HSCAN', keys.index, args.cursor, 'COUNT', args.count)
for at = 1, #part[2], 2 do
  local id = part[2][at]
  local entry = instance_entry(keys, id)
  if not entry then
    -- It cannot be read, and its record becomes a ghost; or the scan shows it twice, and it was ended a moment ago.
    mended = mended + redis.call('HDEL', keys.index, id)
    redis.call('ZREM', keys.leases, id)
  elseif redis.call('HEXISTS', keys.records .. entry.service, id) + redis.call('HEXISTS', keys.beats .. entry.service, id) == 2 then
    mended = mended + redis.call('ZADD', keys.leases, 'NX', clock + entry.ttl_ms / 2, id)
    mended = mended + redis.call('SADD', keys.services, entry.service)
    if entry.name ~= '' then
      mended = mended + redis.call('HSETNX', keys.names, entry.name, id)
    end
    local beat = beat_unpack(redis.call('HGET', keys.beats .. entry.service, id))
    local suspect = beat and (beat.silent or beat.unhealthy) or false
    if suspect ~= (redis.call('SISMEMBER', keys.suspects .. entry.service, id) == 1) then
      mended = mended + 1
      panic_update(keys, now, entry.service, id, suspect)
    end
  else
    mended = mended + 1
    instance_end(keys, now, id, entry, 'no-response')
  end
end
return { 'REPAIRED', part[1], mended }
