-- Let a checker count until `ttl_ms` of lease time from now, and drop those that have not spoken for their time to live.
-- With `ttl_ms` 0 the checker leaves. Returns those that count, as a sorted list and as a set, and 1 if the caller is new.
-- @include int
local function checkers_update(keys, clock, checker, ttl_ms)
  local joined = 0
  if ttl_ms > 0 then
    joined = redis.call('ZADD', keys.checkers, int(clock + ttl_ms), checker)
  else
    redis.call('ZREM', keys.checkers, checker)
  end
  redis.call('ZREMRANGEBYSCORE', keys.checkers, '-inf', '(' .. int(clock))
  local live, counts = redis.call('ZRANGE', keys.checkers, 0, -1), {}
  table.sort(live)
  for _, name in ipairs(live) do -- bound: the gateways and managers of a fleet
    counts[name] = true
  end
  return live, counts, joined
end
