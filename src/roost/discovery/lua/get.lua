#!lua flags=no-writes
-- One instance, living or gone, with its history.
--
-- KEYS @discovery
--   index gone overrides panics records beats history
-- ARGV
--   id         string  instance id
-- REPLY
--   FOUND record:bytes beat:bytes override:bytes panic:int history:[string]  it lives; whether its service is in panic
--   GONE cause:string life:int at_ms:int service:string history:[string]  it left
--   UNKNOWN  nobody knows it
-- FLAGS idempotent

-- @include instance_entry
-- @include instance_override
-- @include tombstone_unpack

local id = args.id

local history = redis.call('LRANGE', keys.history .. id, 0, -1)
local entry = instance_entry(keys, id)
local record = entry and redis.call('HGET', keys.records .. entry.service, id)
local beat = entry and redis.call('HGET', keys.beats .. entry.service, id)
if record and beat then
  return { 'FOUND', record, beat, instance_override(keys, id, entry),
    redis.call('SISMEMBER', keys.panics, entry.service), history }
end
local tombstone = tombstone_unpack(redis.call('HGET', keys.gone, id))
if tombstone then
  return { 'GONE', tombstone.cause, tombstone.life, tombstone.at_ms, tombstone.service, history }
end
return { 'UNKNOWN' }
