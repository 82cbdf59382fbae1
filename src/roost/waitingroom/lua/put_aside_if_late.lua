-- Put somebody in a line aside if they are late for the call that they were told to make by `due`: they keep their
-- place and block nobody. Returns whether they were late.
local function put_aside_if_late(keys, ctx, line, user, seq, due)
  if ctx.clock <= tonumber(due or '0') + ctx.late_ms then
    return false
  end
  redis.call('ZREM', keys.waiting .. line, user)
  redis.call('ZADD', keys.away .. line, seq, user)
  redis.call('HSET', keys.people .. user, 'state', 'away')
  return true
end
