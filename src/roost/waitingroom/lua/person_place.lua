-- What a waiting person is told, as the word WAITING and its fields: seq, rank (1 is next, and never more than they saw
-- before), how many before them are away, whether they were away themselves, when to ask again, how fast their line
-- moves (see `line_speed`), which line it is, and in how many ms the world opens. Before that nobody has a rank: they are
-- told how many take part in the draw. One who was away stands in the line again. Marks them as there.
--
-- `kept` is their state, seq, line, shown; `tat` is written along: every poll comes through here, so nothing is read or
-- written twice.
-- @include int
-- @include line_speed
-- @include poll_interval
local function person_place(keys, ctx, user, kept, tat)
  local person, line, seq = keys.people .. user, kept.line, kept.seq
  local was_away = kept.state == 'away'
  if was_away then
    -- @include line_rejoin
    line_rejoin(keys, line, user, seq)
  end
  local speed = line_speed(keys, ctx, line)
  local opens_ms = math.max(0, math.ceil((ctx.opens_at - ctx.now) / 1000))
  local told, poll_ms
  if opens_ms > 0 then
    told = redis.call('ZCARD', keys.waiting .. line)
    poll_ms = math.min(30000, math.max(2000, opens_ms))
    redis.call('HSET', person, 'due', int(ctx.clock + poll_ms), 'tat', tat)
  else
    local rank = redis.call('ZRANK', keys.waiting .. line, user) + 1
    told = math.min(rank, tonumber(kept.shown or rank))
    poll_ms = poll_interval(rank, speed.fast)
    redis.call('HSET', person, 'due', int(ctx.clock + poll_ms), 'tat', tat, 'shown', told)
  end
  local away_ahead = redis.call('ZCOUNT', keys.away .. line, '-inf', '(' .. seq)
  return { 'WAITING', seq, told, away_ahead, was_away and 1 or 0, poll_ms, speed.fast, speed.slow, line, opens_ms }
end
