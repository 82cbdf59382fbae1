-- The server's clock in microseconds; `now` is the test override, nil outside tests.
local function now_us(now)
  if now then
    return now
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
