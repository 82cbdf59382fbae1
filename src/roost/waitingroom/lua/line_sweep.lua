-- Look at the next part of a line and of those away from it: the late are put aside, and who has been away for too
-- long loses the place. Returns how many did. Where the look stands is kept in the world; bound: `count` of each.
-- @include person_left
-- @include party_shrink
local function line_sweep(keys, waiting_line, away_line, suffix, count, clock, late_ms, gone_ms)
  local kept = redis.call('HMGET', keys.world, 'looked' .. suffix, 'looked_away' .. suffix)
  local from, from_away, gone = tonumber(kept[1] or '0'), tonumber(kept[2] or '0'), 0
  local part = redis.call('ZRANGE', waiting_line, from, from + count - 1, 'WITHSCORES')
  local stay = 0
  for at = 1, #part, 2 do
    local user = part[at]
    if clock > tonumber(redis.call('HGET', keys.people .. user, 'due') or '0') + late_ms then
      redis.call('ZREM', waiting_line, user)
      redis.call('ZADD', away_line, part[at + 1], user)
      redis.call('HSET', keys.people .. user, 'state', 'away')
    else
      stay = stay + 1
    end
  end
  local absent = redis.call('ZRANGE', away_line, from_away, from_away + count - 1, 'WITHSCORES')
  local stay_away = 0
  for at = 1, #absent, 2 do
    local user = absent[at]
    local seen = redis.call('HMGET', keys.people .. user, 'due', 'back', 'size')
    if clock > math.max(tonumber(seen[1] or '0'), tonumber(seen[2] or '0')) + gone_ms then
      redis.call('ZREM', away_line, user)
      if seen[3] then
        party_shrink(keys, waiting_line, away_line, absent[at + 1])
      end
      person_left(keys.people .. user, 'gone')
      gone = gone + 1
    else
      stay_away = stay_away + 1
    end
  end
  redis.call('HSET', keys.world, 'looked' .. suffix, #part < count * 2 and 0 or from + stay,
    'looked_away' .. suffix, #absent < count * 2 and 0 or from_away + stay_away)
  if gone > 0 then
    redis.call('HINCRBY', keys.world, 'gone', gone)
  end
  return gone
end
