#!lua
-- Compare a part of the index with what it points to, and mend what does not fit.
--
-- Scripts are atomic, so nothing should ever be found; this is for data that a person or a partial
-- restore has damaged.
--
-- KEYS
--   meta      hash    lease clock
--   index     hash    id → place, life, nonce, name, ttl, capacity
--   leases    zset    id → lease time at which its silence makes it suspect
--   names     hash    type:serverId → id of the live instance that bears it
--   services  set     places with live instances
--   records*  hash    per place: id → record
--   beats*    hash    per place: id → last beat
-- ARGV
--   cursor    string  where the last part ended; 0 at first
--   count     int     bound: about how many are looked at
-- REPLY
--   REPAIRED cursor:string mended:int  where to go on, and how many did not fit
-- FLAGS idempotent

-- @include instance_entry

local meta, index, leases, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local services, records, beats = KEYS[5], KEYS[6], KEYS[7]
local cursor, count = ARGV[1], tonumber(ARGV[2])

local clock = tonumber(redis.call('HGET', meta, 'clock_ms') or '0')
local mended = 0
local part = redis.call('HSCAN', index, cursor, 'COUNT', count)
for at = 1, #part[2], 2 do
  local id = part[2][at]
  local entry = instance_entry(index, id)
  if redis.call('HEXISTS', records .. entry.place, id) + redis.call('HEXISTS', beats .. entry.place, id) == 2 then
    mended = mended + redis.call('ZADD', leases, 'NX', clock + entry.ttl_ms / 2, id)
    mended = mended + redis.call('SADD', services, entry.place)
    if entry.name ~= '' then
      mended = mended + redis.call('HSETNX', names, entry.name, id)
    end
  else
    mended = mended + redis.call('HDEL', index, id)
    redis.call('ZREM', leases, id)
    if entry.name ~= '' and redis.call('HGET', names, entry.name) == id then
      redis.call('HDEL', names, entry.name)
    end
  end
end
return { 'REPAIRED', part[1], mended }
