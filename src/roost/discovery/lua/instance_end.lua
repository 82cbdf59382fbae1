-- Take an instance out of every index and leave a tombstone with its cause; the one way to leave.
-- @include instance_note
-- @include instance_tell
local function instance_end(index, leases, names, gone, services, overrides, records, beats, history, feed, bell, now, id, entry, cause)
  redis.call('HDEL', index, id)
  redis.call('ZREM', leases, id)
  redis.call('HDEL', records .. entry.place, id)
  redis.call('HDEL', beats .. entry.place, id)
  if redis.call('HLEN', records .. entry.place) == 0 then
    redis.call('SREM', services, entry.place)
  end
  if entry.name ~= '' and redis.call('HGET', names, entry.name) == id then
    redis.call('HDEL', names, entry.name)
  end
  redis.call('HSET', gone, id, cause .. '\t' .. entry.life .. '\t' .. string.format('%.0f', now / 1000) .. '\t' .. entry.place)
  instance_note(history, now, id, 'removed', entry.life, cause)
  redis.call('EXPIRE', history .. id, 86400)
  instance_tell(feed, bell, overrides, now, id, entry, 'removed', cause, '', '')
end
