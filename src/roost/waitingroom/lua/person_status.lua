-- What a person has, as a word and its fields, and that they are still there. A ticket that has ended is answered as
-- the place it turns into. `kept` is what `person_kept` found, `tat` is written along.
--
-- WAITING seq rank away_ahead was_away poll_ms fast slow line opens_ms · OFFERED seq tid left_ms · INSIDE server ·
-- HELD left_ms: dropped out, the place is held · NO_PLACE cause: how they lost it
-- @include int
-- @include person_place
local function person_status(keys, ctx, user, kept, tat)
  local person, state = keys.people .. user, kept.state
  if not state then
    return { 'NO_PLACE', '' }
  end
  if state == 'waiting' or state == 'away' then
    return person_place(keys, ctx, user, kept, tat)
  end
  redis.call('HSET', person, 'tat', tat)
  if state == 'offered' then
    local ticket = redis.call('HMGET', person, 'tid', 'exp')
    if ctx.clock < tonumber(ticket[2]) then
      redis.call('HSET', person, 'due', int(ctx.clock + 2000))
      return { 'OFFERED', kept.seq, ticket[1], ticket[2] - ctx.clock }
    end
    -- @include person_return
    person_return(keys, ctx, user)
    -- @include person_kept
    kept = person_kept(keys, user)
    if kept.state == 'waiting' then
      return person_place(keys, ctx, user, kept, tat)
    end
  end
  if state == 'inside' then
    -- @include person_server
    local server = person_server(keys, user)
    if server then
      return { 'INSIDE', server }
    end
  end
  local held_until = state == 'grace' and tonumber(redis.call('ZSCORE', keys.grace, user))
  if held_until and held_until > ctx.clock then
    return { 'HELD', held_until - ctx.clock }
  end
  return { 'NO_PLACE', redis.call('HGET', person, 'cause') or (state == 'inside' and 'crash') or '' }
end
