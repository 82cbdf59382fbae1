-- This moment in a partition: the store's clock in µs (`now`), and lease time (`clock`), which this look lets pass.
-- @include now_us
-- @include lease_clock
local function partition_clock(keys, now, max_step_ms)
  local at = now_us(now)
  return { now = at, clock = lease_clock(keys.partition, at, max_step_ms) }
end
