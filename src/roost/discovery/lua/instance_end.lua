-- Take an instance out of every index and leave a tombstone with its cause; the one way to leave.
-- @include instance_note
-- @include instance_tell
local function instance_end(keys, now, id, entry, cause)
  redis.call('HDEL', keys.index, id)
  redis.call('ZREM', keys.leases, id)
  redis.call('HDEL', keys.records .. entry.place, id)
  redis.call('HDEL', keys.beats .. entry.place, id)
  if redis.call('HLEN', keys.records .. entry.place) == 0 then
    redis.call('SREM', keys.services, entry.place)
  end
  if entry.name ~= '' and redis.call('HGET', keys.names, entry.name) == id then
    redis.call('HDEL', keys.names, entry.name)
  end
  redis.call('HSET', keys.gone, id, cause .. '\t' .. entry.life .. '\t' .. string.format('%.0f', now / 1000) .. '\t' .. entry.place)
  instance_note(keys, now, id, 'removed', entry.life, cause)
  redis.call('EXPIRE', keys.history .. id, 86400)
  instance_tell(keys, now, id, entry, 'removed', cause, '', '')
end
