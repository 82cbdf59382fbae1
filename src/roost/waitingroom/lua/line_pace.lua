-- Learn how fast a line moves, see `line_speed`, as means over what was seen of it, and later as means that forget. `left`:
-- how many stay in it. A line that ran empty could have moved faster, so that time counts only where it raises the pace, and
-- fades what was learned. `busy`: how many ms of the means are seen. `unpaced`: issued by ticks that were repeated at once,
-- in which no time passed; the next one counts them.
-- @include int
local function line_pace(keys, ctx, line, issued, left)
  local kept = redis.call('HMGET', keys.world, 'fast' .. line, 'slow' .. line, 'paced' .. line, 'busy' .. line,
    'unpaced' .. line)
  local elapsed = ctx.clock - tonumber(kept[3] or ctx.clock)
  if elapsed <= 0 then
    if not kept[3] then
      redis.call('HSET', keys.world, 'paced' .. line, int(ctx.clock))
    elseif issued > 0 then
      redis.call('HINCRBY', keys.world, 'unpaced' .. line, issued)
    end
    return
  end
  if kept[5] then
    issued = issued + tonumber(kept[5])
    redis.call('HDEL', keys.world, 'unpaced' .. line)
  end
  local now, busy = issued * 1000000 / elapsed, tonumber(kept[4] or '0')
  local fast, slow = tonumber(kept[1] or '0'), tonumber(kept[2] or '0')
  if left == 0 and now <= fast then
    redis.call('HSET', keys.world, 'paced' .. line, int(ctx.clock), 'busy' .. line, int(math.max(0, busy - elapsed)))
    return
  end
  busy = math.min(300000, busy + elapsed)
  fast = fast + (now - fast) * math.min(1, elapsed / math.min(60000, busy))
  slow = slow + (now - slow) * math.min(1, elapsed / busy)
  redis.call('HSET', keys.world, 'fast' .. line, math.floor(fast + 0.5), 'slow' .. line, math.floor(slow + 0.5),
    'paced' .. line, int(ctx.clock), 'busy' .. line, int(busy))
end
