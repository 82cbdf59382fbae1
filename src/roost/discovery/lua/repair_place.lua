#!lua
-- End the records of a place that the index does not know: ghosts that would never end by themselves.
--
-- KEYS
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
--   place      string   type:group
--   cursor     string   where the last part ended; 0 at first
--   count      int      bound: about how many are looked at
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPAIRED cursor:string mended:int  where to go on, and how many did not fit
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_end

local index, leases, names, gone, services = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local overrides, feed, bell = KEYS[6], KEYS[7], KEYS[8]
local records, beats, history = KEYS[9], KEYS[10], KEYS[11]
local place, cursor, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = now_us(ARGV[4])

local mended = 0
local part = redis.call('HSCAN', records .. place, cursor, 'COUNT', count)
for at = 1, #part[2], 2 do
  local id = part[2][at]
  local entry = instance_entry(index, id)
  if entry and entry.place ~= place or not entry and redis.call('HEXISTS', gone, id) == 1 then
    redis.call('HDEL', records .. place, id)
    redis.call('HDEL', beats .. place, id)
    mended = mended + 1
  elseif not entry then
    local server_id = cjson.decode(part[2][at + 1]).serverId or ''
    local name = server_id ~= '' and string.match(place, '^[^:]+:') .. server_id or ''
    local life = string.match(redis.call('HGET', beats .. place, id) or '', '"life":(%d+)') or '0'
    instance_end(index, leases, names, gone, services, overrides, records, beats, history, feed, bell, now, id,
      { place = place, life = life, name = name }, 'no-response')
    mended = mended + 1
  end
end
if redis.call('HLEN', records .. place) == 0 then
  mended = mended + redis.call('SREM', services, place)
end
return { 'REPAIRED', part[1], mended }
