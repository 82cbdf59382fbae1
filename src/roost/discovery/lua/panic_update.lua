-- Note whether the instance `id` is suspect, and tell the feed if its service enters or leaves panic by that, or by who
-- came and left: more than half of at least two are suspect. Readers never count: this is the one place.
--
-- Call it after the instance is in or out of `records`. Told before the instance itself where suspicion begins and after it
-- where it ends: so nobody is told that an instance takes no users when it does before and after. Returns whether it told.
-- @include feed_append
local function panic_update(keys, now, service, id, suspect)
  if suspect then
    redis.call('SADD', keys.suspects .. service, id)
  else
    redis.call('SREM', keys.suspects .. service, id)
  end
  local total, suspects = redis.call('HLEN', keys.records .. service), redis.call('SCARD', keys.suspects .. service)
  local panic, panicked = total > 1 and suspects * 2 > total, redis.call('SISMEMBER', keys.panics, service) == 1
  if panic == panicked then
    return false
  end
  if panic then
    redis.call('SADD', keys.panics, service)
  else
    redis.call('SREM', keys.panics, service)
  end
  feed_append(keys, cjson.encode({ event = 'panic', service = service }), now, 10000,
    { 'event', 'panic', 'service', service, 'panic', panic and '1' or '0' })
  return true
end
