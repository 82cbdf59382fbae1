-- How many instances may still end now, how many have ended in each second of lease time that still counts, and the
-- present second. At most `percent` of all (at least one) end within any `window_ms` of lease time, however many sweeps
-- look. A second counts until all of it is older than the window.
local function removal_budget(keys, clock, percent, window_ms)
  local lately, spent = {}, 0
  for second, count in string.gmatch(redis.call('HGET', keys.meta, 'ended_lately') or '', '(%d+):(%d+)') do
    if clock - second * 1000 < window_ms + 1000 then
      lately[second], spent = tonumber(count), spent + count
    end
  end
  local total = redis.call('ZCARD', keys.leases) + spent
  return math.max(1, math.floor(total * percent / 100)) - spent, lately, tostring(math.floor(clock / 1000))
end
