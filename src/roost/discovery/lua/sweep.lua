#!lua
-- Look at the lease clock, mark the silent as suspect, and end those whose lease is over.
--
-- Any number of sweepers may run: time advances once, and each death is told once. At most `budget_percent`
-- of all instances (at least one) end within `window_ms` of lease time, in random order; those beyond it
-- are suspect and get another lease, within which a probe may confirm their death. The window is as long as
-- beats are apart: the leases of a fleet that falls silent at once end spread over that time.
--
-- KEYS @discovery
--   meta index leases names gone services overrides feed bell records beats history
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
-- @include instance_note
-- @include instance_tell
-- @include instance_suspect
-- @include instance_end

local limit, budget_percent, window_ms = args.limit, args.budget_percent, args.window_ms
local max_step_ms, now = args.max_step_ms, now_us(args.now)

local clock = lease_clock(keys.meta, now, max_step_ms)
local total = redis.call('ZCARD', keys.leases)
local silent = redis.call('ZRANGEBYSCORE', keys.leases, '-inf', clock, 'LIMIT', 0, limit)
local over, ended, suspected, held = {}, {}, {}, {}
for _, id in ipairs(silent) do
  local entry = instance_entry(keys, id)
  if not entry then
    redis.call('ZREM', keys.leases, id)
  else
    local silent_now, is_news = instance_suspect(keys, id, entry)
    if not silent_now then
      over[#over + 1] = id
    else
      suspected[#suspected + 1] = id
      instance_note(keys, now, id, 'changed', entry.life, 'suspect')
      if is_news then
        instance_tell(keys, now, id, entry, 'changed', 'suspect', redis.call('HGET', keys.records .. entry.place, id) or '', redis.call('HGET', keys.beats .. entry.place, id) or '')
      end
    end
  end
end

math.randomseed(now % 2147483647)
local kept = redis.call('HMGET', keys.meta, 'window_from_ms', 'window_ended')
local from, spent = tonumber(kept[1] or clock), tonumber(kept[2] or '0')
if clock - from >= window_ms or clock < from then
  from, spent = clock, 0
end
local budget = math.max(1, math.floor((total + spent) * budget_percent / 100)) - spent
for at = #over, 1, -1 do
  local pick = math.random(at)
  over[at], over[pick] = over[pick], over[at]
  local id = over[at]
  local entry = instance_entry(keys, id)
  if #ended < budget then
    ended[#ended + 1] = id
    instance_end(keys, now, id, entry, 'no-response')
  else
    held[#held + 1] = id
    redis.call('ZADD', keys.leases, clock + entry.ttl_ms, id)
  end
end
if #over > 0 then
  redis.call('HSET', keys.meta, 'window_from_ms', from, 'window_ended', spent + #ended)
end
return { 'SWEPT', clock, ended, suspected, held }
