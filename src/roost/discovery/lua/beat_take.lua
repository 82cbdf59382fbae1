-- Take one beat of the instance `id`, whose `entry` is nil if nobody knows it: take over what it says of itself. Returns
-- the answer as `heartbeat` replies it, but for DRAIN. The lease to renew is put into `leases`, a flat list of lease time
-- and id: all of a batch are written at once.
-- @include beat_pack
-- @include beat_unpack
-- @include beat_update
-- @include nonce_after
local function beat_take(keys, now, clock, leases, id, entry, given)
  local life = given.life
  if not entry then
    -- @include removal_cause
    local cause = removal_cause(keys, id, life)
    return cause and 'REMOVED\t' .. cause or 'UNKNOWN'
  end
  if life ~= '' and life ~= entry.life then
    local is_fenced = tonumber(life) < tonumber(entry.life) and entry.nonce ~= nonce_after(life)
    return is_fenced and 'FENCED\t' .. entry.life or 'UNKNOWN'
  end
  local beat = beat_unpack(redis.call('HGET', keys.beats .. entry.service, id))
  if not beat then
    return 'UNKNOWN'
  end

  if given.tick_age_ms * 2 > entry.ttl_ms then
    -- @include mark_silent
    mark_silent(keys, now, id, entry)
  else
    if beat.silent then
      redis.call('ZREM', keys.leases, id)
    end
    leases[#leases + 1] = clock + entry.ttl_ms / 2
    leases[#leases + 1] = id
    local was_suspect = beat.silent or beat.unhealthy
    local turned, is_news = beat_update(beat, entry, now, given.status, given.load, given.performance)
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
    if was_suspect and not beat.unhealthy then
      -- @include panic_update
      panic_update(keys, now, entry.service, id, false)
    end
  end
  return 'OK'
end
