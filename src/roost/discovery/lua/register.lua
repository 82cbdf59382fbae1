#!lua
-- Register an instance under a new life, all of it or nothing.
--
-- A life is larger than every life before it, also after a failover that lost some. A repeated call (the
-- same nonce) gives the same life. An instance that registers itself again after it was forgotten names
-- its former life: it is refused if it was removed on purpose, or if a later life took its id. Where it comes
-- back as something else, its end is told first: a watcher of its old service or labels only sees it leave. Else only
-- `added` is told: to a reader who knows the id under another life, it is also that life's end.
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
-- ARGV
--   id           string   instance id
--   service        string   type:group
--   name         string   type:serverId; empty without a server id
--   record       bytes    the record as JSON
--   status       string   what the instance says of itself
--   load         string   users on it now
--   capacity     string   users it can take
--   performance  bytes    JSON object
--   ttl_ms       string   silence after which it is dead, in lease time
--   nonce        string   different for each attempt to register
--   former_life  string   set when it registers again by itself; else empty
--   now          int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   REGISTERED life:int                     it lives, under this life
--   TAKEN holder:string remaining_ms:int    another live instance of the type answers to this id
--   REMOVED cause:string                    it was removed on purpose and must not come back by itself
--   FENCED life:int                         a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include int
-- @include beat_pack
-- @include instance_entry
-- @include instance_put
-- @include instance_note
-- @include instance_tell
-- @include name_holder

local id, service, name, former_life, now = args.id, args.service, args.name, args.former_life, now_us(args.now)

local known = instance_entry(keys, id)
if known and known.nonce == args.nonce then
  return { 'REGISTERED', known.life }
end
if former_life ~= '' then
  if known and tonumber(known.life) > tonumber(former_life) then
    return { 'FENCED', known.life }
  end
  -- @include removal_cause
  local cause = removal_cause(keys, id, former_life)
  if cause then
    return { 'REMOVED', cause }
  end
end
local kept = redis.call('HMGET', keys.meta, 'clock_ms', 'life')
local clock = tonumber(kept[1] or '0')
local known_as = name ~= '' and name or string.match(service, '^[^:]*') .. ':' .. id
local holder, remaining_ms = name_holder(keys, known_as, id, clock)
if holder then
  return { 'TAKEN', holder, remaining_ms }
end

if known then
  local same = known.service == service and redis.call('HGET', keys.records .. service, id) == args.record
  -- @include instance_unlist
  instance_unlist(keys, id, known)
  if not same then
    instance_tell(keys, now, id, known, 'removed', 'terminated')
  end
  if known.service ~= service then
    -- @include panic_update
    panic_update(keys, now, known.service, id, false)
  end
end

local life, load = int(math.max(now, tonumber(kept[2] or '0') + 1)), args.load
local entry = { service = service, life = life, nonce = args.nonce, name = name, ttl_ms = args.ttl_ms, capacity = args.capacity }
local beat = beat_pack({ status = args.status, load = load, told_load = load, beat_ms = int(math.floor(now / 1000)),
  life = life, performance = args.performance })
redis.call('HSET', keys.meta, 'life', life)
instance_put(keys, id, entry, args.record, beat, clock + args.ttl_ms / 2)
instance_note(keys, now, id, entry, 'added', args.status)
instance_tell(keys, now, id, entry, 'added', args.status, args.record, beat)
if redis.call('EXISTS', keys.suspects .. service) == 1 then
  -- @include panic_update
  panic_update(keys, now, service, id, false)
end
return { 'REGISTERED', life }
