-- Mark an instance as silent, its end then being due half a lease later; false if it was marked already or has no
-- beat. It is told unless the checkers' votes had made it suspect before.
-- @include beat_pack
-- @include beat_unpack
-- @include instance_note
-- @include panic_update
-- @include instance_tell
local function mark_silent(keys, now, id, entry)
  local beat = beat_unpack(redis.call('HGET', keys.beats .. entry.service, id))
  if not beat or beat.silent then
    return false
  end
  beat.silent = true
  redis.call('HSET', keys.beats .. entry.service, id, beat_pack(beat))
  redis.call('ZINCRBY', keys.leases, entry.ttl_ms / 2, id)
  instance_note(keys, now, id, entry, 'changed', 'suspect')
  if not beat.unhealthy then
    panic_update(keys, now, entry.service, id, true)
    instance_tell(keys, now, id, entry, 'changed', 'suspect')
  end
  return true
end
