-- How many more tickets may be issued now: free places, and what the rate allows. 0 while the world holds or is
-- not open yet.
--
-- free = capacity - most people inside - tickets out - places held. The sums are exact upper bounds at this
-- instant, and whoever asks spends in the same script. Returns also the free places and the capacity, whatever the
-- rate says: a party may overdraw the rate, never the places.
local function world_room(keys, now, clock)
  local kept = redis.call('HMGET', keys.world, 'cap', 'limit', 'inside', 'mode', 'doubt', 'rebuild_until', 'rate', 'tokens', 'tokens_at', 'opens_at')
  local cap, limit, inside = tonumber(kept[1] or '0'), tonumber(kept[2]), tonumber(kept[3] or '0')
  if limit and limit < cap then
    cap = limit
  end
  local free = cap - inside - redis.call('ZCARD', keys.offers) - redis.call('ZCARD', keys.grace)
  if kept[4] == 'hold' or tonumber(kept[5] or '0') > 0 or clock < tonumber(kept[6] or '0')
    or now < tonumber(kept[10] or '0') then
    return 0, 0, cap
  end
  local rate = tonumber(kept[7] or '0')
  if rate > 0 then
    local tokens = tonumber(kept[8] or rate) + (clock - tonumber(kept[9] or clock)) * rate / 1000
    tokens = math.min(tokens, math.max(rate, 1))
    redis.call('HSET', keys.world, 'tokens', string.format('%.3f', tokens), 'tokens_at', string.format('%.0f', clock))
    return math.max(0, math.min(free, math.floor(tokens))), math.max(0, free), cap
  end
  return math.max(0, free), math.max(0, free), cap
end
