-- End the reports that wait for their life since the last one came a minute ago: it died before the leader heard of it, or
-- will never be shown. Bound: 256 wait. One whose time was not kept, by a process of a former version, counts from now.
-- @include int
-- @include pending_forget
local function pending_expire(keys, ctx)
  if redis.call('HLEN', keys.pending) > redis.call('ZCARD', keys.pending_at) then
    for _, id in ipairs(redis.call('HKEYS', keys.pending)) do
      redis.call('ZADD', keys.pending_at, 'NX', int(ctx.clock), id)
    end
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.pending_at, '-inf', int(ctx.clock - 60000), 'LIMIT', 0, 256)) do
    pending_forget(keys, id)
  end
end
