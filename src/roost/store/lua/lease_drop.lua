-- Give the lease in the hash `key` back; false if `holder` under `epoch` did not hold it. The epoch stays.
local function lease_drop(key, holder, epoch)
  local kept = redis.call('HMGET', key, 'holder', 'epoch')
  if kept[1] ~= holder or kept[2] ~= epoch then
    return false
  end
  redis.call('HSET', key, 'holder', '', 'until_ms', '0')
  return true
end
