-- How many instances may still end now, and the window that this was found for: `from` and `spent`, to be kept.
-- At most `percent` of all (at least one) end within `window_ms` of lease time, however many sweeps look.
local function removal_budget(keys, clock, percent, window_ms)
  local kept = redis.call('HMGET', keys.meta, 'window_from_ms', 'window_ended')
  local from, spent = tonumber(kept[1] or clock), tonumber(kept[2] or '0')
  if clock - from >= window_ms or clock < from then
    from, spent = clock, 0
  end
  local total = redis.call('ZCARD', keys.leases) + spent
  return math.max(1, math.floor(total * percent / 100)) - spent, from, spent
end
