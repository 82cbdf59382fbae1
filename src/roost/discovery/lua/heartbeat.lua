#!lua
-- Renew the leases of instances, and take over what they say of themselves. What is empty stays as it was.
--
-- Many at once: all beats that reach a gateway together are one call, which costs the store a fraction of as many
-- calls. Each has an answer of its own. A beat is an event only if the status changed, its silence ended, or the load
-- moved by a twentieth of the capacity, or to or from full, since it was last told. A beat whose main loop has not turned
-- for half the lease does not renew: a hung server must not look alive. A beat ends silence, not what the checkers found.
--
-- A beat is given as six values: instance id; the life it has, empty where only the id is known; status, load and
-- performance (a JSON object), each empty where it is unchanged; ms since its main loop turned. Its answer is OK, DRAIN
-- (renewed; the operator wants it empty), UNKNOWN (register again, also who did and has not heard the answer), REMOVED and
-- the cause (on purpose: do not come back), or FENCED and the life (a later one is registered), with a tab between.
--
-- KEYS @discovery
--   meta index leases gone overrides suspects panics feed bell records beats history
-- ARGV
--   now       int     test override of the server's clock in µs; empty outside tests
--   given...  string  six values for each beat; bound: 100 beats
-- REPLY
--   BEATEN answers:[string]   for each beat
-- FLAGS idempotent

-- @include now_us
-- @include entry_unpack
-- @include beat_take

local given, now = args.given, now_us(args.now)

local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
local ids, names, lives, answers, leases = {}, {}, {}, {}, {}
for at = 1, #given, 6 do
  ids[#ids + 1] = given[at]
end
local entries = redis.call('HMGET', keys.index, unpack(ids))
for number, id in ipairs(ids) do
  local entry, at = entry_unpack(entries[number]), number * 6 - 5
  names[number] = entry and entry.name ~= '' and entry.name or id
  lives[number] = entry and entry.life
  answers[number] = beat_take(keys, now, clock, leases, id, entry, { life = given[at + 1], status = given[at + 2],
    load = given[at + 3], performance = given[at + 4], tick_age_ms = tonumber(given[at + 5]) })
end
if #leases > 0 then
  redis.call('ZADD', keys.leases, 'GT', unpack(leases))
end
for number, override in ipairs(redis.call('HMGET', keys.overrides, unpack(names))) do
  if answers[number] == 'OK' and override and string.find(override, '"drain":true', 1, true) then
    local only = string.match(override, '"drainLife":"(%d+)"')
    answers[number] = (not only or only == lives[number]) and 'DRAIN' or 'OK'
  end
end
return { 'BEATEN', answers }
