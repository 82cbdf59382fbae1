#!lua
-- Keep an operator's order for an instance apart from its record, so that it survives a new registration.
--
-- KEYS @discovery
--   index overrides feed bell records beats history
-- ARGV
--   id         string   instance id
--   order      bytes    the order as JSON; empty lifts it
--   word       string   the order in a word, for the history
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   ORDERED name:string   kept under this name
--   UNKNOWN               nobody knows this instance
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_note
-- @include instance_tell

local id, order, word = args.id, args.order, args.word
local now = now_us(args.now)

local entry = instance_entry(keys, id)
if not entry then
  return { 'UNKNOWN' }
end
local name = entry.name ~= '' and entry.name or id
if order == '' then
  redis.call('HDEL', keys.overrides, name)
else
  redis.call('HSET', keys.overrides, name, order)
end
instance_note(keys, now, id, 'override', entry.life, word)
instance_tell(keys, now, id, entry, 'changed', word, redis.call('HGET', keys.records .. entry.place, id) or '', redis.call('HGET', keys.beats .. entry.place, id) or '')
return { 'ORDERED', name }
