#!lua
-- Look at the lease clock, mark the silent as suspect, and end those whose lease is over.
--
-- Any number of sweepers may run: time advances once, and each death is told once. At most `budget_percent`
-- of all instances (at least one) end within any `window_ms` of lease time, in random order; those beyond it
-- are suspect and get another lease, within which a probe may confirm their death. The window is as long as
-- beats are apart: the leases of a fleet that falls silent at once end spread over that time.
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
-- ARGV
--   limit           int      bound: instances looked at in one sweep
--   budget_percent  int      share of all instances that may end in one window
--   window_ms       int      length of that window, in lease time
--   max_step_ms     int      the most that this look may add to the lease clock
--   now             int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   SWEPT clock_ms:int ended:[string] suspected:[string] held:[string]  what this sweep found
-- FLAGS idempotent

-- @include now_us
-- @include lease_clock
-- @include instance_entry
-- @include instance_end
-- @include mark_silent
-- @include removal_budget
-- @include budget_spend
-- @include shuffle

local now = now_us(args.now)

local clock = lease_clock(keys.meta, now, args.max_step_ms)
local budget, lately, second = removal_budget(keys, clock, args.budget_percent, args.window_ms)
local over, ended, suspected, held = {}, {}, {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.leases, '-inf', clock, 'LIMIT', 0, args.limit)) do
  local entry = instance_entry(keys, id)
  if not entry then
    redis.call('ZREM', keys.leases, id)
  elseif mark_silent(keys, now, id, entry) then
    suspected[#suspected + 1] = id
  else
    over[#over + 1] = id
  end
end

shuffle(over, now)
for _, id in ipairs(over) do
  local entry = instance_entry(keys, id)
  if #ended < budget then
    ended[#ended + 1] = id
    instance_end(keys, now, id, entry, 'no-response')
  else
    held[#held + 1] = id
    redis.call('ZADD', keys.leases, clock + entry.ttl_ms, id)
  end
end
if #ended > 0 then
  budget_spend(keys, lately, second, #ended)
end
return { 'SWEPT', clock, ended, suspected, held }
