-- Learn how fast a line moves, see `line_speed`, as means that forget.
-- @include int
local function line_pace(keys, ctx, line, issued)
  local kept = redis.call('HMGET', keys.world, 'fast' .. line, 'slow' .. line, 'paced' .. line)
  local elapsed = ctx.clock - tonumber(kept[3] or ctx.clock)
  if elapsed <= 0 then
    if not kept[3] then
      redis.call('HSET', keys.world, 'paced' .. line, int(ctx.clock))
    end
    return
  end
  local now = issued * 1000000 / elapsed
  local fast, slow = tonumber(kept[1] or now), tonumber(kept[2] or now)
  fast = fast + (now - fast) * math.min(1, elapsed / 60000)
  slow = slow + (now - slow) * math.min(1, elapsed / 300000)
  redis.call('HSET', keys.world, 'fast' .. line, math.floor(fast + 0.5), 'slow' .. line, math.floor(slow + 0.5),
    'paced' .. line, int(ctx.clock))
end
