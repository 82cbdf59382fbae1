-- Prolong the lease in the hash `key`; false if `holder` under `epoch` no longer holds it.
--
-- A lease that is over but that nobody took is still the holder's. It is never shortened.
-- @include int
local function lease_renew(key, holder, epoch, ttl_ms, clock)
  local kept = redis.call('HMGET', key, 'holder', 'epoch', 'until_ms')
  if kept[1] ~= holder or kept[2] ~= epoch then
    return false
  end
  redis.call('HSET', key, 'until_ms', int(math.max(tonumber(kept[3]), clock + ttl_ms)))
  return true
end
