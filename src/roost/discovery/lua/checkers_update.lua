-- Keep a checker's opinion until `ttl_ms` of lease time from now, drop those that have not spoken for their time to
-- live, and return how many count. With `ttl_ms` 0 the checker leaves.
-- @include int
local function checkers_update(keys, clock, checker, ballots, ttl_ms)
  redis.call('ZADD', keys.checkers, ttl_ms > 0 and clock + ttl_ms or '-inf', checker)
  redis.call('HSET', keys.votes, checker, ballots)
  for _, silent in ipairs(redis.call('ZRANGEBYSCORE', keys.checkers, '-inf', '(' .. int(clock))) do
    redis.call('ZREM', keys.checkers, silent)
    redis.call('HDEL', keys.votes, silent)
  end
  return redis.call('ZCARD', keys.checkers)
end
