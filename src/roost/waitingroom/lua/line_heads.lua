-- The first `wanted` people of a line who are there, and whether the look ended before it was known that there are
-- no more. Whoever is late is put aside: at most `looks` are looked at.
local function line_heads(waiting_line, away_line, people, wanted, looks, clock, late_ms)
  local heads = {}
  if wanted <= 0 then
    return heads, 0
  end
  local looked = redis.call('ZRANGE', waiting_line, 0, looks - 1, 'WITHSCORES')
  for at = 1, #looked, 2 do
    local user = looked[at]
    local due = tonumber(redis.call('HGET', people .. user, 'due') or '0')
    if clock <= due + late_ms then
      heads[#heads + 1] = user
      if #heads == wanted then
        return heads, 0
      end
    else
      redis.call('ZREM', waiting_line, user)
      redis.call('ZADD', away_line, looked[at + 1], user)
      redis.call('HSET', people .. user, 'state', 'away')
    end
  end
  return heads, #looked == looks * 2 and 1 or 0
end
