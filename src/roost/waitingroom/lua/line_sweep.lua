-- Scan the next part of a line and of those away from it: the late are put aside, and who has been away for too
-- long loses the place. Returns how many did. Where the scan stands is kept in the world; bound: `count` of each.
-- @include put_aside_if_late
-- @include person_left
-- @include party_shrink
local function line_sweep(keys, ctx, line, count)
  local kept = redis.call('HMGET', keys.world, 'looked' .. line, 'looked_away' .. line)
  local from, from_away = tonumber(kept[1] or '0'), tonumber(kept[2] or '0')
  local stay, stay_away, gone = 0, 0, 0
  local present = redis.call('ZRANGE', keys.waiting .. line, from, from + count - 1, 'WITHSCORES')
  for at = 1, #present, 2 do
    local user, due = present[at], redis.call('HGET', keys.people .. present[at], 'due')
    if not put_aside_if_late(keys, ctx, line, user, present[at + 1], due) then
      stay = stay + 1
    end
  end
  local absent = redis.call('ZRANGE', keys.away .. line, from_away, from_away + count - 1, 'WITHSCORES')
  for at = 1, #absent, 2 do
    local user = absent[at]
    local seen = redis.call('HMGET', keys.people .. user, 'due', 'back', 'size')
    if ctx.clock > math.max(tonumber(seen[1] or '0'), tonumber(seen[2] or '0')) + ctx.gone_ms then
      redis.call('ZREM', keys.away .. line, user)
      if seen[3] then
        party_shrink(keys, line, absent[at + 1])
      end
      person_left(keys, user, 'gone')
      gone = gone + 1
    else
      stay_away = stay_away + 1
    end
  end
  redis.call('HSET', keys.world, 'looked' .. line, #present < count * 2 and 0 or from + stay,
    'looked_away' .. line, #absent < count * 2 and 0 or from_away + stay_away)
  if gone > 0 then
    redis.call('HINCRBY', keys.world, 'gone', gone)
  end
  return gone
end
