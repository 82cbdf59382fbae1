#!lua flags=no-writes
-- What everybody may know of a world: its numbers, its servers, and of every line how long it is and where in the order
-- each of at most 65 marks stands, so that a place can be told without asking for it.
--
-- KEYS @waitingroom
--   world servers pending offers grace waiting away
-- ARGV
--   lines...  string  the line of every class; bound: as many as there are classes
-- REPLY
--   BOARD numbers:[string] servers:[string] pending:[string] offers:int held:int lines:[string]   names and values; ids and rows; the same of servers that are not known; tickets out; places held; per line its length, how many are away, and the places of its marks, evenly spread from first to last
-- FLAGS idempotent

-- @include int

local lines = {}
for _, suffix in ipairs(args.lines) do
  local length = redis.call('ZCARD', keys.waiting .. suffix)
  local marks, parts = {}, math.min(64, length - 1)
  for part = 0, parts do
    local rank = math.floor((length - 1) * part / math.max(1, parts))
    marks[#marks + 1] = int(redis.call('ZRANGE', keys.waiting .. suffix, rank, rank, 'WITHSCORES')[2])
  end
  lines[#lines + 1] = tostring(length)
  lines[#lines + 1] = tostring(redis.call('ZCARD', keys.away .. suffix))
  lines[#lines + 1] = table.concat(marks, ',')
end
return { 'BOARD', redis.call('HGETALL', keys.world), redis.call('HGETALL', keys.servers), redis.call('HGETALL', keys.pending),
  redis.call('ZCARD', keys.offers), redis.call('ZCARD', keys.grace), lines }
