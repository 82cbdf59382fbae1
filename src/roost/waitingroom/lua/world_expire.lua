-- Take back tickets and held places that have ended; returns how many tickets. Bound: `ctx.expire_limit` of each.
-- @include person_left
-- @include person_return
local function world_expire(keys, ctx)
  local ended = redis.call('ZRANGEBYSCORE', keys.offers, '-inf', ctx.clock, 'LIMIT', 0, ctx.expire_limit)
  for _, user in ipairs(ended) do
    person_return(keys, ctx, user)
  end
  for _, user in ipairs(redis.call('ZRANGEBYSCORE', keys.grace, '-inf', ctx.clock, 'LIMIT', 0, ctx.expire_limit)) do
    redis.call('ZREM', keys.grace, user)
    person_left(keys, user, 'dropped')
  end
  return #ended
end
