-- Put an instance into every index, in place of its tombstone; the one way in. `beat` is packed, `due` is the lease
-- time at which silence makes it suspect.
-- @include entry_pack
local function instance_put(keys, id, entry, record, beat, due)
  redis.call('HSET', keys.index, id, entry_pack(entry))
  redis.call('ZADD', keys.leases, due, id)
  redis.call('HSET', keys.records .. entry.service, id, record)
  redis.call('HSET', keys.beats .. entry.service, id, beat)
  redis.call('SADD', keys.services, entry.service)
  if entry.name ~= '' then
    redis.call('HSET', keys.names, entry.name, id)
  end
  if redis.call('HDEL', keys.gone, id) == 1 then
    redis.call('PERSIST', keys.history .. id)
  end
end
