#!lua
-- End an instance whose death a probe has confirmed, unless it has beaten since.
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
--   life       string   the life that was probed
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   BURIED   it is out, and its death was told
--   ALIVE    it is not silent any more, or another life, or already out
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_end

local index, leases, names, gone, services = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local overrides, feed, bell = KEYS[6], KEYS[7], KEYS[8]
local records, beats, history = KEYS[9], KEYS[10], KEYS[11]
local id, life = ARGV[1], ARGV[2]
local now = now_us(ARGV[3])

local entry = instance_entry(index, id)
local beat = entry and redis.call('HGET', beats .. entry.place, id)
local suspect = tonumber(string.match(beat or '', '^{"suspect":(%d),'))
if not suspect or entry.life ~= life or suspect % 2 == 0 then
  return { 'ALIVE' }
end
instance_end(index, leases, names, gone, services, overrides, records, beats, history, feed, bell, now, id, entry, 'no-response')
return { 'BURIED' }
