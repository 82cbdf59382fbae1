-- Set or clear in a beat what the checkers decided; told unless silence makes the instance suspect anyway.
-- @include beat_pack
-- @include beat_unpack
-- @include instance_note
-- @include panic_update
-- @include instance_tell
local function mark_unhealthy(keys, now, id, entry, unhealthy)
  local beat = beat_unpack(redis.call('HGET', keys.beats .. entry.service, id))
  if not beat or beat.unhealthy == unhealthy then
    return
  end
  beat.unhealthy = unhealthy
  redis.call('HSET', keys.beats .. entry.service, id, beat_pack(beat))
  local status = (unhealthy or beat.silent) and 'suspect' or beat.status
  instance_note(keys, now, id, entry, unhealthy and 'unhealthy' or 'recovered', status)
  if beat.silent then
    return
  end
  if unhealthy then
    panic_update(keys, now, entry.service, id, true)
  end
  instance_tell(keys, now, id, entry, 'changed', status)
  if not unhealthy then
    panic_update(keys, now, entry.service, id, false)
  end
end
