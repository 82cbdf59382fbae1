-- Take an instance's record, beat and name out; its index entry and lease stay.
local function instance_unlist(keys, id, entry)
  redis.call('HDEL', keys.records .. entry.service, id)
  redis.call('HDEL', keys.beats .. entry.service, id)
  if redis.call('HLEN', keys.records .. entry.service) == 0 then
    redis.call('SREM', keys.services, entry.service)
  end
  if entry.name ~= '' and redis.call('HGET', keys.names, entry.name) == id then
    redis.call('HDEL', keys.names, entry.name)
  end
end
