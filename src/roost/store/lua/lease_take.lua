-- Take the lease in the hash `key` for `holder` if it is free or over; returns its epoch, or nil if it is held.
--
-- Every grant has a larger epoch than all before it, also when the former holder takes it again: the
-- epoch outlives the lease, so a holder that comes late can be told from the present one.
-- @include int
local function lease_take(key, holder, ttl_ms, clock)
  local kept = redis.call('HMGET', key, 'holder', 'until_ms', 'epoch')
  if kept[1] and kept[1] ~= '' and tonumber(kept[2]) > clock then
    return nil
  end
  local epoch = int(tonumber(kept[3] or '0') + 1)
  redis.call('HSET', key, 'holder', holder, 'epoch', epoch, 'until_ms', int(clock + ttl_ms))
  return epoch
end
