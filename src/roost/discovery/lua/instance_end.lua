-- Take an instance out of every index and leave a tombstone with its cause; the one way to leave.
-- @include int
-- @include tombstone_pack
-- @include instance_unlist
-- @include instance_note
-- @include instance_tell
-- @include panic_update
local function instance_end(keys, now, id, entry, cause)
  redis.call('HDEL', keys.index, id)
  redis.call('ZREM', keys.leases, id)
  instance_unlist(keys, id, entry)
  local tombstone = { cause = cause, life = entry.life, at_ms = int(now / 1000), service = entry.service,
    clock_ms = redis.call('HGET', keys.meta, 'clock_ms') or '0' }
  redis.call('HSET', keys.gone, id, tombstone_pack(tombstone))
  instance_note(keys, now, id, entry, 'removed', cause)
  redis.call('EXPIRE', keys.history .. id, 86400)
  instance_tell(keys, now, id, entry, 'removed', cause)
  panic_update(keys, now, entry.service, id, false)
end
