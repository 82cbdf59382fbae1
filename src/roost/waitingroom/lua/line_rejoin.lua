-- Somebody who was away calls again: they stand in the line at their old place.
local function line_rejoin(keys, line, user, seq)
  redis.call('ZREM', keys.away .. line, user)
  redis.call('ZADD', keys.waiting .. line, seq, user)
  redis.call('HSET', keys.people .. user, 'state', 'waiting')
end
