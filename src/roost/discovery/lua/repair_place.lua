#!lua
-- Drop records and beats of a place that the index does not know: ghosts that nobody could ever end.
--
-- KEYS
--   index     hash    id → place, life, nonce, name, ttl, capacity
--   services  set     places with live instances
--   records*  hash    per place: id → record
--   beats*    hash    per place: id → last beat
-- ARGV
--   place     string  type:group
--   cursor    string  where the last part ended; 0 at first
--   count     int     bound: about how many are looked at
-- REPLY
--   REPAIRED cursor:string mended:int  where to go on, and how many did not fit
-- FLAGS idempotent

-- @include instance_entry

local index, services, records, beats = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local place, cursor, count = ARGV[1], ARGV[2], tonumber(ARGV[3])

local mended = 0
local part = redis.call('HSCAN', records .. place, cursor, 'COUNT', count)
for at = 1, #part[2], 2 do
  local id = part[2][at]
  local entry = instance_entry(index, id)
  if not entry or entry.place ~= place then
    redis.call('HDEL', records .. place, id)
    redis.call('HDEL', beats .. place, id)
    mended = mended + 1
  end
end
if redis.call('HLEN', records .. place) == 0 then
  mended = mended + redis.call('SREM', services, place)
end
return { 'REPAIRED', part[1], mended }
