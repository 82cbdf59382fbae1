-- How many more tickets may be issued now: free places, and what the rate allows. 0 while the world holds, is not open
-- yet, or has no leader.
--
-- free = what every open server may let in (`row_room`; `cap` is that and the people inside) - tickets out - places held,
-- and no more than the operator's limit less everybody inside. The sums are exact at this instant, and the caller spends
-- in the same script. Returns also the free places, whatever the rate says: a party may overdraw the rate, never the
-- places.
-- @include int
-- @include world_led
local function world_room(keys, ctx)
  local kept = redis.call('HMGET', keys.world, 'cap', 'limit', 'inside', 'doubt', 'rebuild_until', 'rate', 'tokens', 'tokens_at')
  local capacity, limit, inside = tonumber(kept[1] or '0'), tonumber(kept[2]), tonumber(kept[3] or '0')
  if limit and limit < capacity then
    capacity = limit
  end
  local free = capacity - inside - redis.call('ZCARD', keys.offers) - redis.call('ZCARD', keys.grace)
  if ctx.mode == 'hold' or tonumber(kept[4] or '0') > 0 or ctx.clock < tonumber(kept[5] or '0') or ctx.now < ctx.opens_at
    or not world_led(keys, ctx) then
    return 0, 0
  end
  local rate = tonumber(kept[6] or '0')
  if rate > 0 then
    local tokens = tonumber(kept[7] or rate) + (ctx.clock - tonumber(kept[8] or ctx.clock)) * rate / 1000
    tokens = math.min(tokens, math.max(rate, 1))
    redis.call('HSET', keys.world, 'tokens', string.format('%.3f', tokens), 'tokens_at', int(ctx.clock))
    return math.max(0, math.min(free, math.floor(tokens))), math.max(0, free)
  end
  return math.max(0, free), math.max(0, free)
end
