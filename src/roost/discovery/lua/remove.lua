#!lua
-- Take an instance out: its own clean stop (`terminated`), or an operator's act (`removed`).
--
-- The tombstone keeps a late beat of this life from reviving it.
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
--   id         string   instance id
--   life       string   the life that is meant; empty: whichever it has
--   place      string   type:group where it is expected; empty: anywhere
--   cause      string   terminated or removed
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEFT             it is out, now or already
--   UNKNOWN          nobody knows it there
--   FENCED life:int  a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_end

local index, leases, names, gone, services = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local overrides, feed, bell = KEYS[6], KEYS[7], KEYS[8]
local records, beats, history = KEYS[9], KEYS[10], KEYS[11]
local id, life, place, cause = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now = now_us(ARGV[5])

local entry = instance_entry(index, id)
if not entry then
  local was = string.match(redis.call('HGET', gone, id) or '', '^([^\t]+)')
  if was and was ~= 'no-response' then
    return { 'LEFT' }
  end
  return { 'UNKNOWN' }
end
if life ~= '' and tonumber(life) < tonumber(entry.life) then
  return { 'FENCED', entry.life }
end
if place ~= '' and place ~= entry.place then
  return { 'UNKNOWN' }
end
instance_end(index, leases, names, gone, services, overrides, records, beats, history, feed, bell, now, id, entry, cause)
return { 'LEFT' }
