#!lua
-- Renew an instance's lease, and take over what it says of itself. What is empty stays as it was.
--
-- A beat is an event only if the status changed, its silence ended, or the load moved by a twentieth of the
-- capacity since it was last told. A beat whose main loop has not turned for half the lease does not
-- renew: a hung server must not look alive. A beat ends silence, not what the checkers found.
--
-- KEYS @discovery
--   meta index leases gone overrides feed bell records beats history
-- ARGV
--   id           string   instance id
--   life         string   the life it has; empty where only the id is known
--   status       string   what the instance says of itself; empty: unchanged
--   load         string   users on it now; empty: unchanged
--   performance  bytes    JSON object; empty: unchanged
--   tick_age_ms  int      how long ago its main loop turned
--   now          int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   OK                    renewed
--   DRAIN                 renewed; the operator wants it empty
--   UNKNOWN               nobody knows it: register again
--   REMOVED cause:string  it was removed on purpose: do not come back
--   FENCED life:int       a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_override
-- @include beat_pack
-- @include beat_unpack
-- @include beat_update

local id, life, now = args.id, args.life, now_us(args.now)

local entry = instance_entry(keys, id)
if not entry then
  -- @include removal_cause
  local cause = removal_cause(keys, id, life)
  if cause then
    return { 'REMOVED', cause }
  end
  return { 'UNKNOWN' }
end
if life ~= '' and life ~= entry.life then
  if tonumber(life) < tonumber(entry.life) then
    return { 'FENCED', entry.life }
  end
  return { 'UNKNOWN' }
end
local beat = beat_unpack(redis.call('HGET', keys.beats .. entry.service, id))
if not beat then
  return { 'UNKNOWN' }
end

if args.tick_age_ms * 2 > entry.ttl_ms then
  -- @include mark_silent
  mark_silent(keys, now, id, entry)
else
  local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
  if beat.silent then
    redis.call('ZREM', keys.leases, id)
  end
  redis.call('ZADD', keys.leases, 'GT', clock + entry.ttl_ms / 2, id)
  local turned, is_news = beat_update(beat, entry, now, args.status, args.load, args.performance)
  local packed = beat_pack(beat)
  redis.call('HSET', keys.beats .. entry.service, id, packed)
  local status = beat.unhealthy and 'suspect' or beat.status
  if turned then
    -- @include instance_note
    instance_note(keys, now, id, entry, 'changed', status)
  end
  if is_news then
    -- @include instance_tell
    instance_tell(keys, now, id, entry, 'changed', status, nil, packed)
  end
end

local override = instance_override(keys, id, entry)
if override ~= '' and string.find(override, '"drain":true', 1, true) then
  return { 'DRAIN' }
end
return { 'OK' }
