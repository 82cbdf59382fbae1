-- Let the world's time pass, but only while a gateway is there: if none has signed since the last look the clock stands,
-- and nobody loses a place, a ticket or a turn because they could not be heard. Sets `ctx.clock` and `ctx.is_heard`: whether
-- signs came within the last two seconds; else nothing may be issued.
--
-- After a longer silence (`touch` notes it) people need a moment to be heard again: until then those who are gone look as
-- present as they do, and nobody is admitted.
-- @include int
-- @include lease_clock
local function world_clock(keys, ctx, max_step_ms)
  local kept = redis.call('HMGET', keys.world, 'signs', 'signs_seen', 'signed_at', 'gap', 'rebuild_until')
  local signed_at = tonumber(kept[3] or '0')
  if kept[1] and kept[1] ~= kept[2] then
    signed_at = ctx.now
    ctx.clock = lease_clock(keys.world, ctx.now, max_step_ms)
    redis.call('HSET', keys.world, 'signs_seen', kept[1], 'signed_at', int(signed_at))
  end
  if kept[4] then
    local heard_at = math.max(tonumber(kept[5] or '0'), ctx.clock + ctx.late_ms + 2000)
    redis.call('HSET', keys.world, 'rebuild_until', int(heard_at))
    redis.call('HDEL', keys.world, 'gap')
  end
  ctx.is_heard = signed_at <= ctx.now and ctx.now - signed_at <= 2000000
end
