-- The number of a new place. Numbers grow strictly, and follow the store's clock in µs where they can: so one that was
-- issued after the last write that survived a failover is not issued again.
-- @include int
local function place_number(keys, ctx)
  local seq = int(math.max(tonumber(redis.call('HGET', keys.world, 'seq')) + 1, ctx.now))
  redis.call('HSET', keys.world, 'seq', seq)
  return seq
end
