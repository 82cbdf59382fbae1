#!lua flags=no-writes
-- Every live instance of the places asked for, with the point in the feed at which this is true.
--
-- KEYS @discovery
--   services overrides feed records beats
-- ARGV
--   wanted_type   string  * for any
--   wanted_group  string  * for any
-- REPLY
--   SNAPSHOT rev:int at:int records:[bytes] beats:[bytes] orders:[bytes]   flat lists of id (or name) and JSON
-- FLAGS idempotent bulk

local wanted_type, wanted_group = args.wanted_type, args.wanted_group

local rev, at = 0, 0
local last = redis.call('XREVRANGE', keys.feed, '+', '-', 'COUNT', 1)[1]
if last then
  rev = string.match(last[1], '^%d+')
  at = last[2][2]
end
local orders = redis.call('HGETALL', keys.overrides)
if wanted_type ~= '*' and wanted_group ~= '*' then
  local place = wanted_type .. ':' .. wanted_group
  return { 'SNAPSHOT', rev, at, redis.call('HGETALL', keys.records .. place), redis.call('HGETALL', keys.beats .. place), orders }
end
local found_records, found_beats = {}, {}
for _, place in ipairs(redis.call('SMEMBERS', keys.services)) do
  local place_type, place_group = string.match(place, '^([^:]+):([^:]+)$')
  if (wanted_type == '*' or wanted_type == place_type) and (wanted_group == '*' or wanted_group == place_group) then
    for _, part in ipairs(redis.call('HGETALL', keys.records .. place)) do
      found_records[#found_records + 1] = part
    end
    for _, part in ipairs(redis.call('HGETALL', keys.beats .. place)) do
      found_beats[#found_beats + 1] = part
    end
  end
end
return { 'SNAPSHOT', rev, at, found_records, found_beats, orders }
