#!lua
-- Register an instance under a new life, all of it or nothing.
--
-- A life is larger than every life before it, also after a failover that lost some. A repeated call (the
-- same nonce) gives the same life. An instance that registers itself again after it was forgotten names
-- its former life: it is refused if it was removed on purpose, or if a later life took its id.
--
-- Where it registers again as something else, the end of its life before is told too: whoever watches its
-- old place or labels only would not see it leave.
--
-- KEYS
--   meta         hash     lease clock, and the last life given
--   index        hash     id → place, life, nonce, name, ttl, capacity
--   leases       zset     id → lease time at which its silence makes it suspect, or, if it is, dead
--   names        hash     type:serverId → id of the live instance that bears it
--   gone         hash     id → tombstone
--   services     set      places (type:group) with live instances
--   overrides    hash     type:serverId or id → what the operator ordered
--   feed         stream   every change of discovery
--   bell         channel  rings when the feed has grown
--   records*     hash     per place: id → record
--   beats*       hash     per place: id → last beat
--   history*     list     per id: what happened to it
-- ARGV
--   id           string   instance id
--   place        string   type:group
--   name         string   type:serverId; empty without a server id
--   record       bytes    the record as JSON
--   status       string   what the instance says of itself
--   load         int      users on it now
--   capacity     int      users it can take
--   performance  bytes    JSON object
--   ttl_ms       int      silence after which it is dead, in lease time
--   nonce        string   different for each attempt to register
--   former_life  string   set when it registers again by itself; else empty
--   now          int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   REGISTERED life:int                     it lives, under this life
--   TAKEN holder:string remaining_ms:int    another live instance of the type bears this server id
--   REMOVED cause:string                    it was removed on purpose and must not come back by itself
--   FENCED life:int                         a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_note
-- @include instance_tell

local meta, index, leases, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local gone, services, overrides, feed, bell = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local records, beats, history = KEYS[10], KEYS[11], KEYS[12]
local id, place, name, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local status, load, capacity, performance = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local ttl_ms, nonce, former_life = tonumber(ARGV[9]), ARGV[10], ARGV[11]
local now = now_us(ARGV[12])

local known = instance_entry(index, id)
if known and known.nonce == nonce then
  return { 'REGISTERED', known.life }
end
if former_life ~= '' then
  if known and tonumber(known.life) > tonumber(former_life) then
    return { 'FENCED', known.life }
  end
  local cause, life = string.match(redis.call('HGET', gone, id) or '', '^([^\t]+)\t(%d+)')
  if cause and cause ~= 'no-response' and tonumber(life) >= tonumber(former_life) then
    return { 'REMOVED', cause }
  end
end

local kept = redis.call('HMGET', meta, 'clock_ms', 'life')
local clock = tonumber(kept[1] or '0')
local holder = name ~= '' and redis.call('HGET', names, name)
local other = holder and holder ~= id and instance_entry(index, holder)
if other then
  local due = tonumber(redis.call('ZSCORE', leases, holder) or clock)
  local beat = redis.call('HGET', beats .. other.place, holder) or ''
  local is_silent = tonumber(string.match(beat, '^{"suspect":(%d),') or '0') % 2 == 1
  local ends = is_silent and due or due + other.ttl_ms / 2
  return { 'TAKEN', holder, math.max(0, math.ceil(ends - clock)) }
end

if known then
  local same = known.place == place and redis.call('HGET', records .. place, id) == record
  redis.call('HDEL', records .. known.place, id)
  redis.call('HDEL', beats .. known.place, id)
  if redis.call('HLEN', records .. known.place) == 0 then
    redis.call('SREM', services, known.place)
  end
  if known.name ~= '' then
    redis.call('HDEL', names, known.name)
  end
  if not same then
    instance_tell(feed, bell, overrides, now, id, known, 'removed', 'terminated', '', '')
  end
end

local life = string.format('%.0f', math.max(now, tonumber(kept[2] or '0') + 1))
local beat_ms = string.format('%.0f', math.floor(now / 1000))
local beat = '{"suspect":0,"status":"' .. status .. '","load":' .. load .. ',"told":' .. load .. ',"beatMs":' .. beat_ms
  .. ',"life":' .. life .. ',"performance":' .. performance .. '}'
local entry = { place = place, life = life, name = name }
redis.call('HSET', meta, 'life', life)
redis.call('HSET', index, id, table.concat({ place, life, nonce, name, ttl_ms, capacity }, '\t'))
redis.call('ZADD', leases, clock + ttl_ms / 2, id)
redis.call('HSET', records .. place, id, record)
redis.call('HSET', beats .. place, id, beat)
redis.call('SADD', services, place)
if name ~= '' then
  redis.call('HSET', names, name, id)
end
if redis.call('HDEL', gone, id) == 1 then
  redis.call('PERSIST', history .. id)
end
instance_note(history, now, id, 'added', life, status)
instance_tell(feed, bell, overrides, now, id, entry, 'added', status, record, beat)
return { 'REGISTERED', life }
