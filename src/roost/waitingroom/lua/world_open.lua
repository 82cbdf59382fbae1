-- Give birth to a world that the store does not know, and return its lease clock in ms and when it was born.
-- Its sequence starts at its birth in µs: a world that was wiped issues no number twice.
local function world_open(keys, now)
  local kept = redis.call('HMGET', keys.world, 'born', 'clock_ms')
  if not kept[1] then
    kept[1] = string.format('%.0f', now)
    redis.call('HSET', keys.world, 'born', kept[1], 'seq', kept[1])
  end
  return tonumber(kept[2] or '0'), kept[1]
end
