#!lua flags=no-writes
-- One instance, living or gone, with its history.
--
-- KEYS
--   index      hash   id → place, life, nonce, name, ttl, capacity
--   gone       hash   id → tombstone
--   overrides  hash   type:serverId or id → what the operator ordered
--   records*   hash   per place: id → record
--   beats*     hash   per place: id → last beat
--   history*   list   per id: what happened to it
-- ARGV
--   id         string  instance id
-- REPLY
--   FOUND record:bytes beat:bytes order:bytes history:[string]  it lives
--   GONE cause:string life:int at_ms:int place:string history:[string]  it left
--   UNKNOWN  nobody knows it
-- FLAGS idempotent

-- @include instance_entry

local index, gone, overrides = KEYS[1], KEYS[2], KEYS[3]
local records, beats, history = KEYS[4], KEYS[5], KEYS[6]
local id = ARGV[1]

local told = redis.call('LRANGE', history .. id, 0, -1)
local entry = instance_entry(index, id)
local record = entry and redis.call('HGET', records .. entry.place, id)
local beat = entry and redis.call('HGET', beats .. entry.place, id)
if record and beat then
  local order = redis.call('HGET', overrides, entry.name ~= '' and entry.name or id) or ''
  return { 'FOUND', record, beat, order, told }
end
local tomb = redis.call('HGET', gone, id)
if tomb then
  local cause, life, at_ms, place = string.match(tomb, '^([^\t]+)\t(%d+)\t(%d+)\t(.+)$')
  return { 'GONE', cause, life, at_ms, place, told }
end
return { 'UNKNOWN' }
