-- Issue a ticket: it counts against the capacity from now on, and only its consumption or its end frees it.
-- Returns OFFERED and its fields: seq, tid, left_ms; and the trace of who was sampled.
-- @include int
-- @include feed_append
local function person_offer(keys, ctx, user, tid)
  local person, ends = keys.people .. user, int(ctx.clock + ctx.ticket_ms)
  local kept = redis.call('HMGET', person, 'nick', 'seq', 'at', 'eta', 'trace')
  redis.call('HSET', person, 'state', 'offered', 'tid', tid, 'exp', ends,
    'stuck', redis.call('HGET', keys.world, 'stuck') or '0')
  redis.call('ZADD', keys.offers, ends, user)
  redis.call('SET', keys.granted .. tid, cjson.encode({ userId = user, nickname = kept[1] or user }),
    'EX', math.ceil(ctx.ticket_ms / 1000))
  redis.call('HINCRBY', keys.world, 'issued', 1)
  if tonumber(redis.call('HGET', keys.world, 'rate') or '0') > 0 then
    redis.call('HINCRBYFLOAT', keys.world, 'tokens', -1)
  end
  if kept[4] then
    redis.call('HINCRBY', keys.world, 'eta_error_ms', math.floor(math.abs(ctx.clock - kept[3] - kept[4])))
    redis.call('HINCRBY', keys.world, 'eta_count', 1)
  end
  redis.call('HDEL', person, 'eta', 'size')
  local event = { 'event', 'promoted', 'user', user, 'seq', kept[2] }
  if kept[5] then
    event[7], event[8] = 'trace', kept[5]
  end
  feed_append(keys, 'promoted', ctx.now, 10000, event)
  return { 'OFFERED', kept[2], tid, ctx.ticket_ms }, kept[5]
end
