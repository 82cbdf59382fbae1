#!lua flags=no-writes
-- Every live instance of the services asked for, all services in panic, and the point in the feed at which this is true.
--
-- KEYS @discovery
--   services overrides panics feed records beats
-- ARGV
--   wanted_type   string  * for any
--   wanted_group  string  * for any
-- REPLY
--   SNAPSHOT rev:int at:int records:[bytes] beats:[bytes] overrides:[bytes] panics:[string]   flat lists of id (or name) and value
-- FLAGS idempotent bulk

local wanted_type, wanted_group = args.wanted_type, args.wanted_group

local rev, at = 0, 0
local last = redis.call('XREVRANGE', keys.feed, '+', '-', 'COUNT', 1)[1]
if last then
  rev = string.match(last[1], '^%d+')
  at = last[2][2]
end
local overrides, panics = redis.call('HGETALL', keys.overrides), redis.call('SMEMBERS', keys.panics)
if wanted_type ~= '*' and wanted_group ~= '*' then
  local service = wanted_type .. ':' .. wanted_group
  return { 'SNAPSHOT', rev, at, redis.call('HGETALL', keys.records .. service), redis.call('HGETALL', keys.beats .. service),
    overrides, panics }
end
local found_records, found_beats = {}, {}
for _, service in ipairs(redis.call('SMEMBERS', keys.services)) do
  local service_type, service_group = string.match(service, '^([^:]+):([^:]+)$')
  if (wanted_type == '*' or wanted_type == service_type) and (wanted_group == '*' or wanted_group == service_group) then
    for _, part in ipairs(redis.call('HGETALL', keys.records .. service)) do
      found_records[#found_records + 1] = part
    end
    for _, part in ipairs(redis.call('HGETALL', keys.beats .. service)) do
      found_beats[#found_beats + 1] = part
    end
  end
end
return { 'SNAPSHOT', rev, at, found_records, found_beats, overrides, panics }
