-- Learn how fast a line moves: thousandths of a person in a second, over the last minute (`fast`) and the last five
-- (`slow`), as means that forget.
local function line_pace(keys, suffix, issued, clock)
  local kept = redis.call('HMGET', keys.world, 'fast' .. suffix, 'slow' .. suffix, 'paced' .. suffix)
  local elapsed = clock - tonumber(kept[3] or clock)
  if elapsed <= 0 then
    if not kept[3] then
      redis.call('HSET', keys.world, 'paced' .. suffix, string.format('%.0f', clock))
    end
    return
  end
  local now = issued * 1000000 / elapsed
  local fast, slow = tonumber(kept[1] or now), tonumber(kept[2] or now)
  fast = fast + (now - fast) * math.min(1, elapsed / 60000)
  slow = slow + (now - slow) * math.min(1, elapsed / 300000)
  redis.call('HSET', keys.world, 'fast' .. suffix, math.floor(fast + 0.5), 'slow' .. suffix, math.floor(slow + 0.5),
    'paced' .. suffix, string.format('%.0f', clock))
end
