-- Rate limit of one person, kept in the field `tat` of their hash: 0, or in how many ms to come again.
-- `period_ms` apart in the long run, `burst` at once; a period of 0 is no limit.
local function gcra(person, now, period_ms, burst)
  if period_ms <= 0 then
    return 0
  end
  local now_ms = math.floor(now / 1000)
  local tat = math.max(now_ms, tonumber(redis.call('HGET', person, 'tat') or '0'))
  local wait = tat + period_ms - burst * period_ms - now_ms
  if wait > 0 and tat - now_ms <= burst * period_ms then
    return wait
  end
  redis.call('HSET', person, 'tat', string.format('%.0f', (wait > 0 and now_ms or tat) + period_ms))
  return 0
end
