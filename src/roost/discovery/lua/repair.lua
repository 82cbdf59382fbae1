#!lua
-- Compare a part of the index with what it points to, and mend what does not fit.
--
-- Scripts are atomic, so nothing should ever be found; this is for data that a person or a partial
-- restore has damaged. Who lost its record or beat ends, and registers again if it lives.
--
-- KEYS
--   meta       hash     lease clock
--   index      hash     id → place, life, nonce, name, ttl, capacity
--   leases     zset     id → lease time at which its silence makes it suspect, or, if it is, dead
--   names      hash     type:serverId → id of the live instance that bears it
--   gone       hash     id → tombstone
--   services   set      places with live instances
--   overrides  hash     type:serverId or id → what the operator ordered
--   feed       stream   every change of discovery
--   bell       channel  rings when the feed has grown
--   records*   hash     per place: id → record
--   beats*     hash     per place: id → last beat
--   history*   list     per id: what happened to it
-- ARGV
--   cursor     string   where the last part ended; 0 at first
--   count      int      bound: about how many are looked at
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPAIRED cursor:string mended:int  where to go on, and how many did not fit
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_end

local meta, index, leases, names, gone, services = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local overrides, feed, bell = KEYS[7], KEYS[8], KEYS[9]
local records, beats, history = KEYS[10], KEYS[11], KEYS[12]
local cursor, count = ARGV[1], tonumber(ARGV[2])
local now = now_us(ARGV[3])

local clock = tonumber(redis.call('HGET', meta, 'clock_ms') or '0')
local mended = 0
local part = redis.call('HSCAN', index, cursor, 'COUNT', count)
for at = 1, #part[2], 2 do
  local id = part[2][at]
  local entry = instance_entry(index, id)
  if not entry then
    -- A scan may show an id twice: it was ended a moment ago.
  elseif redis.call('HEXISTS', records .. entry.place, id) + redis.call('HEXISTS', beats .. entry.place, id) == 2 then
    mended = mended + redis.call('ZADD', leases, 'NX', clock + entry.ttl_ms / 2, id)
    mended = mended + redis.call('SADD', services, entry.place)
    if entry.name ~= '' then
      mended = mended + redis.call('HSETNX', names, entry.name, id)
    end
  else
    mended = mended + 1
    instance_end(index, leases, names, gone, services, overrides, records, beats, history, feed, bell, now, id, entry,
      'no-response')
  end
end
return { 'REPAIRED', part[1], mended }
