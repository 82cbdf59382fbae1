-- What a waiting person is told: seq, rank (1 is next, and never more than they saw before), how many before them
-- are away, when to ask again, and how fast their line moves (thousandths of a person in a second, lately and
-- longer), which line it is, and in how many ms the world opens. Before that nobody has a rank: they are told how
-- many take part in the draw. One who was away stands in the line again, at the old place. Marks them as there.
--
-- `kept` is their state, seq, line, shown; `numbers` the world's opens_at and its line's fast and slow; `tat` is
-- written along. Every poll comes through here: what can be read once is read once, by the caller.
local function person_place(keys, person, user, now, clock, kept, numbers, tat)
  local state, seq, line = kept[1], kept[2], kept[3] or ''
  local was_away = state == 'away' and 1 or 0
  if was_away == 1 then
    redis.call('ZREM', keys.away .. line, user)
    redis.call('ZADD', keys.waiting .. line, seq, user)
  end
  local rank = redis.call('ZRANK', keys.waiting .. line, user) + 1
  local fast = tonumber(numbers[2] or '0')
  local poll_ms = 30000
  if rank <= 100 then
    poll_ms = 2000
  elseif fast > 0 then
    poll_ms = math.min(30000, math.max(2000, math.floor(rank * 100000 / fast)))
  end
  local opens_ms = math.max(0, math.ceil((tonumber(numbers[1] or '0') - now) / 1000))
  local told = math.min(rank, tonumber(kept[4] or rank))
  if opens_ms > 0 then
    told = redis.call('ZCARD', keys.waiting .. line)
    poll_ms = math.min(30000, math.max(2000, opens_ms))
    redis.call('HSET', person, 'due', string.format('%.0f', clock + poll_ms), 'tat', tat, 'state', 'waiting')
  else
    redis.call('HSET', person, 'due', string.format('%.0f', clock + poll_ms), 'tat', tat, 'state', 'waiting', 'shown', told)
  end
  local away_ahead = redis.call('ZCOUNT', keys.away .. line, '-inf', '(' .. seq)
  return { seq, told, away_ahead, was_away, poll_ms, fast, tonumber(numbers[3] or '0'), line, opens_ms }
end
