-- Take the lease in the hash `key` for `holder` if it is free or over; returns its epoch, or nil if it is held.
--
-- Every grant has a larger epoch than the store kept, than the one that the caller `named` (0: none), and than the server's
-- clock in µs has passed: so no epoch is granted twice, also not by a store that was wiped, or by a replica that lost the
-- last grant. A holder that names a later epoch than the store kept held a grant which the store has lost: it is free.
-- @include int
local function lease_take(key, holder, named, ttl_ms, clock, now)
  local kept = redis.call('HMGET', key, 'holder', 'until_ms', 'epoch')
  local epoch = tonumber(kept[3] or '0')
  local is_lost = kept[1] == holder and named > epoch
  if kept[1] and kept[1] ~= '' and tonumber(kept[2]) > clock and not is_lost then
    return nil
  end
  local granted = int(math.max(epoch + 1, named + 1, now))
  redis.call('HSET', key, 'holder', holder, 'epoch', granted, 'until_ms', int(clock + ttl_ms))
  return granted
end
