-- Put an instance in place of its tombstone, everywhere but into `index`: its caller does that at last. `beat` is packed,
-- `due` is the lease time at which silence makes it suspect.
local function instance_put(keys, id, entry, record, beat, due)
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
