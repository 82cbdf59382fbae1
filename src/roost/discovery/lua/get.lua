#!lua flags=no-writes
-- One instance, living or gone, with its history.
--
-- KEYS @discovery
--   index gone overrides records beats history
-- ARGV
--   id         string  instance id
-- REPLY
--   FOUND record:bytes beat:bytes order:bytes history:[string]  it lives
--   GONE cause:string life:int at_ms:int place:string history:[string]  it left
--   UNKNOWN  nobody knows it
-- FLAGS idempotent

-- @include instance_entry

local id = args.id

local told = redis.call('LRANGE', keys.history .. id, 0, -1)
local entry = instance_entry(keys, id)
local record = entry and redis.call('HGET', keys.records .. entry.place, id)
local beat = entry and redis.call('HGET', keys.beats .. entry.place, id)
if record and beat then
  local order = redis.call('HGET', keys.overrides, entry.name ~= '' and entry.name or id) or ''
  return { 'FOUND', record, beat, order, told }
end
local tomb = redis.call('HGET', keys.gone, id)
if tomb then
  local cause, life, at_ms, place = string.match(tomb, '^([^\t]+)\t(%d+)\t(%d+)\t(.+)$')
  return { 'GONE', cause, life, at_ms, place, told }
end
return { 'UNKNOWN' }
