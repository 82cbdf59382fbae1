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
-- KEYS @discovery
--   meta index leases names gone services overrides feed bell records beats history
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

local id, place, name, record = args.id, args.place, args.name, args.record
local status, load, capacity, performance = args.status, args.load, args.capacity, args.performance
local ttl_ms, nonce, former_life = args.ttl_ms, args.nonce, args.former_life
local now = now_us(args.now)

local known = instance_entry(keys, id)
if known and known.nonce == nonce then
  return { 'REGISTERED', known.life }
end
if former_life ~= '' then
  if known and tonumber(known.life) > tonumber(former_life) then
    return { 'FENCED', known.life }
  end
  local cause, life = string.match(redis.call('HGET', keys.gone, id) or '', '^([^\t]+)\t(%d+)')
  if cause and cause ~= 'no-response' and tonumber(life) >= tonumber(former_life) then
    return { 'REMOVED', cause }
  end
end

local kept = redis.call('HMGET', keys.meta, 'clock_ms', 'life')
local clock = tonumber(kept[1] or '0')
local holder = name ~= '' and redis.call('HGET', keys.names, name)
local other = holder and holder ~= id and instance_entry(keys, holder)
if other then
  local due = tonumber(redis.call('ZSCORE', keys.leases, holder) or clock)
  local beat = redis.call('HGET', keys.beats .. other.place, holder) or ''
  local is_silent = tonumber(string.match(beat, '^{"suspect":(%d),') or '0') % 2 == 1
  local ends = is_silent and due or due + other.ttl_ms / 2
  return { 'TAKEN', holder, math.max(0, math.ceil(ends - clock)) }
end

if known then
  local same = known.place == place and redis.call('HGET', keys.records .. place, id) == record
  redis.call('HDEL', keys.records .. known.place, id)
  redis.call('HDEL', keys.beats .. known.place, id)
  if redis.call('HLEN', keys.records .. known.place) == 0 then
    redis.call('SREM', keys.services, known.place)
  end
  if known.name ~= '' then
    redis.call('HDEL', keys.names, known.name)
  end
  if not same then
    instance_tell(keys, now, id, known, 'removed', 'terminated', '', '')
  end
end

local life = string.format('%.0f', math.max(now, tonumber(kept[2] or '0') + 1))
local beat_ms = string.format('%.0f', math.floor(now / 1000))
local beat = '{"suspect":0,"status":"' .. status .. '","load":' .. load .. ',"told":' .. load .. ',"beatMs":' .. beat_ms
  .. ',"life":' .. life .. ',"performance":' .. performance .. '}'
local entry = { place = place, life = life, name = name }
redis.call('HSET', keys.meta, 'life', life)
redis.call('HSET', keys.index, id, table.concat({ place, life, nonce, name, ttl_ms, capacity }, '\t'))
redis.call('ZADD', keys.leases, clock + ttl_ms / 2, id)
redis.call('HSET', keys.records .. place, id, record)
redis.call('HSET', keys.beats .. place, id, beat)
redis.call('SADD', keys.services, place)
if name ~= '' then
  redis.call('HSET', keys.names, name, id)
end
if redis.call('HDEL', keys.gone, id) == 1 then
  redis.call('PERSIST', keys.history .. id)
end
instance_note(keys, now, id, 'added', life, status)
instance_tell(keys, now, id, entry, 'added', status, record, beat)
return { 'REGISTERED', life }
