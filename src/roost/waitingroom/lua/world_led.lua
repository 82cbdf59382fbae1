-- Whether a leader has ticked within the last ten seconds: without one nobody knows which servers still live. A sign
-- that lies in the future is none: the clock went back, and the leader may be dead.
local function world_led(keys, ctx)
  local led_at = tonumber(redis.call('HGET', keys.world, 'led_at') or '0')
  return led_at <= ctx.now and ctx.now - led_at <= 10000000
end
