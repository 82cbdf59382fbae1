#!lua
-- Keep an operator's override for an instance apart from its record, so that it survives a new registration.
--
-- KEYS @discovery
--   index overrides panics feed bell records beats history
-- ARGV
--   id         string   instance id
--   override   bytes    the override as JSON; empty lifts it
--   word       string   the override in a word, for the history
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   OVERRIDDEN name:string   kept under this name
--   UNKNOWN               nobody knows this instance
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_note
-- @include instance_tell

local id, now = args.id, now_us(args.now)

local entry = instance_entry(keys, id)
if not entry then
  return { 'UNKNOWN' }
end
local name = entry.name ~= '' and entry.name or id
if args.override == '' then
  redis.call('HDEL', keys.overrides, name)
else
  redis.call('HSET', keys.overrides, name, args.override)
end
instance_note(keys, now, id, entry, 'override', args.word)
instance_tell(keys, now, id, entry, 'changed', args.word)
return { 'OVERRIDDEN', name }
