-- Rate limit of one person: `tat` is the time in ms by which all their calls so far would have been due, nil at first.
-- Returns 0, or in how many ms to come again, and the new `tat`. `period_ms` apart in the long run, `burst` at once; a
-- period of 0 is no limit.
-- @include int
local function gcra(tat, now, period_ms, burst)
  local now_ms = math.floor(now / 1000)
  tat = math.max(now_ms, tonumber(tat or '0'))
  local wait = tat + period_ms - burst * period_ms - now_ms
  if wait > 0 and tat - now_ms <= burst * period_ms then
    return wait, tat
  end
  return 0, int((wait > 0 and now_ms or tat) + period_ms)
end
