#!lua
-- Look at the lease clock, mark the silent as suspect, and end those whose lease is over.
--
-- Any number of sweepers may run: time advances once, and each death is told once. At most `budget_percent`
-- of all instances (at least one) end within `window_ms` of lease time, in random order; those beyond it
-- are suspect and get another lease, within which a probe may confirm their death. The window is as long as
-- beats are apart: the leases of a fleet that falls silent at once end spread over that time.
--
-- KEYS
--   meta            hash     lease clock; since when, and how many, ended in this window
--   index           hash     id → place, life, nonce, name, ttl, capacity
--   leases          zset     id → lease time at which its silence makes it suspect, or, if it is, dead
--   names           hash     type:serverId → id of the live instance that bears it
--   gone            hash     id → tombstone
--   services        set      places with live instances
--   overrides       hash     type:serverId or id → what the operator ordered
--   feed            stream   every change of discovery
--   bell            channel  rings when the feed has grown
--   records*        hash     per place: id → record
--   beats*          hash     per place: id → last beat
--   history*        list     per id: what happened to it
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

local meta, index, leases, names, gone, services = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local overrides, feed, bell = KEYS[7], KEYS[8], KEYS[9]
local records, beats, history = KEYS[10], KEYS[11], KEYS[12]
local limit, budget_percent, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local max_step_ms, now = tonumber(ARGV[4]), now_us(ARGV[5])

local clock = lease_clock(meta, now, max_step_ms)
local total = redis.call('ZCARD', leases)
local silent = redis.call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, limit)
local over, ended, suspected, held = {}, {}, {}, {}
for _, id in ipairs(silent) do
  local entry = instance_entry(index, id)
  if not entry then
    redis.call('ZREM', leases, id)
  else
    local silent_now, is_news = instance_suspect(leases, beats, id, entry)
    if not silent_now then
      over[#over + 1] = id
    else
      suspected[#suspected + 1] = id
      instance_note(history, now, id, 'changed', entry.life, 'suspect')
      if is_news then
        instance_tell(feed, bell, overrides, now, id, entry, 'changed', 'suspect',
          redis.call('HGET', records .. entry.place, id) or '', redis.call('HGET', beats .. entry.place, id) or '')
      end
    end
  end
end

math.randomseed(now % 2147483647)
local kept = redis.call('HMGET', meta, 'window_from_ms', 'window_ended')
local from, spent = tonumber(kept[1] or clock), tonumber(kept[2] or '0')
if clock - from >= window_ms or clock < from then
  from, spent = clock, 0
end
local budget = math.max(1, math.floor((total + spent) * budget_percent / 100)) - spent
for at = #over, 1, -1 do
  local pick = math.random(at)
  over[at], over[pick] = over[pick], over[at]
  local id = over[at]
  local entry = instance_entry(index, id)
  if #ended < budget then
    ended[#ended + 1] = id
    instance_end(index, leases, names, gone, services, overrides, records, beats, history, feed, bell, now, id, entry,
      'no-response')
  else
    held[#held + 1] = id
    redis.call('ZADD', leases, clock + entry.ttl_ms, id)
  end
end
if #over > 0 then
  redis.call('HSET', meta, 'window_from_ms', from, 'window_ended', spent + #ended)
end
return { 'SWEPT', clock, ended, suspected, held }
