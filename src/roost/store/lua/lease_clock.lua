-- Advance the lease clock kept in the fields `clock_ms` and `last_advance_us` of the hash `key`, and return it in ms.
--
-- It adds the time since the last advance, but never more than `max_step_ms`, and nothing when the
-- server's clock went back: lease time runs only while somebody looks. A store or a fleet of
-- backends that was away, a stepped clock or a replica with another clock expires nobody.
-- @include int
local function lease_clock(key, now, max_step_ms)
  local kept = redis.call('HMGET', key, 'clock_ms', 'last_advance_us')
  local clock = tonumber(kept[1] or '0')
  local last = tonumber(kept[2] or now)
  local step = math.floor((now - last) / 1000)
  if step < 0 then
    step = 0
    last = now
  elseif step > max_step_ms then
    step = max_step_ms
    last = now
  else
    last = last + step * 1000
  end
  clock = clock + step
  redis.call('HSET', key, 'clock_ms', int(clock), 'last_advance_us', int(last))
  return clock
end
