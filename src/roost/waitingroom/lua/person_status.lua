-- What one person has, as a word and its fields, and that they are still there. A ticket that has ended is answered as
-- the place it turns into.
--
-- WAITING seq rank away_ahead was_away poll_ms fast slow line opens_ms · OFFERED seq tid left_ms · INSIDE server ·
-- HELD left_ms: dropped out, the place is held · LIMITED retry_ms: asks too often · NOBODY cause: how they lost it
-- @include gcra
-- @include person_return
-- @include person_place
-- @include person_told
-- @include person_is_inside
local function person_status(keys, user, now, forfeit, period_ms, burst)
  local person = redis.call('HMGET', keys.people .. user, 'state', 'seq', 'line', 'shown', 'tat', 'tid', 'exp', 'server', 'cause')
  local state = person[1]
  if not state then
    return { 'NOBODY', '' }
  end
  local retry_ms, tat = gcra(person[5], now, period_ms, burst)
  if retry_ms > 0 then
    return { 'LIMITED', retry_ms }
  end
  local line = person[3] or ''
  local numbers = redis.call('HMGET', keys.world, 'opens_at', 'fast' .. line, 'slow' .. line, 'clock_ms')
  local clock = tonumber(numbers[4] or '0')
  if state == 'waiting' or state == 'away' then
    return { 'WAITING', unpack(person_place(keys, keys.people .. user, user, now, clock, person, numbers, tat)) }
  end
  redis.call('HSET', keys.people .. user, 'tat', tat)
  if state == 'offered' then
    redis.call('HSET', keys.people .. user, 'due', string.format('%.0f', clock + 2000))
    if clock < tonumber(person[7]) then
      return { 'OFFERED', person[2], person[6], person[7] - clock }
    end
    person_return(keys, keys.people .. user, user, forfeit)
    if redis.call('HGET', keys.people .. user, 'state') == 'waiting' then
      return { 'WAITING', unpack(person_told(keys, keys.people .. user, user, now, clock, tat)) }
    end
    return { 'NOBODY', redis.call('HGET', keys.people .. user, 'cause') }
  end
  if state == 'inside' and person_is_inside(keys, keys.people .. user) then
    return { 'INSIDE', person[8] }
  end
  local held_until = state == 'grace' and tonumber(redis.call('ZSCORE', keys.grace, user))
  if held_until and held_until > clock then
    return { 'HELD', held_until - clock }
  end
  return { 'NOBODY', person[9] or (state == 'inside' and 'crash') or '' }
end
