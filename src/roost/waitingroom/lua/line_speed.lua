-- How fast a line moves, in thousandths of a person in a second: `fast` over the last minute, `slow` over the last five.
local function line_speed(keys, ctx, line)
  if not ctx.speeds[line] then
    local kept = redis.call('HMGET', keys.world, 'fast' .. line, 'slow' .. line)
    ctx.speeds[line] = { fast = tonumber(kept[1] or '0'), slow = tonumber(kept[2] or '0') }
  end
  return ctx.speeds[line]
end
