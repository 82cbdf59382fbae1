#!lua
-- Keep an operator's order for an instance apart from its record, so that it survives a new registration.
--
-- KEYS
--   index      hash     id → place, life, nonce, name, ttl, capacity
--   overrides  hash     type:serverId or id → what the operator ordered
--   feed       stream   every change of discovery
--   bell       channel  rings when the feed has grown
--   records*   hash     per place: id → record
--   beats*     hash     per place: id → last beat
--   history*   list     per id: what happened to it
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

local index, overrides, feed, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local records, beats, history = KEYS[5], KEYS[6], KEYS[7]
local id, order, word = ARGV[1], ARGV[2], ARGV[3]
local now = now_us(ARGV[4])

local entry = instance_entry(index, id)
if not entry then
  return { 'UNKNOWN' }
end
local name = entry.name ~= '' and entry.name or id
if order == '' then
  redis.call('HDEL', overrides, name)
else
  redis.call('HSET', overrides, name, order)
end
instance_note(history, now, id, 'override', entry.life, word)
instance_tell(feed, bell, overrides, now, id, entry, 'changed', word,
  redis.call('HGET', records .. entry.place, id) or '', redis.call('HGET', beats .. entry.place, id) or '')
return { 'ORDERED', name }
