#!lua flags=no-writes
-- What everybody may know of a world: its numbers, its servers, and of every line how long it is and where in the order
-- each of at most 65 marks stands, so that a place can be told without asking for it.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   servers   hash     server id → its row in the ledger
--   offers    zset     user → lease time at which the ticket ends
--   grace     zset     user → lease time until which a place inside is held
--   waiting*  zset     per class: user → place in the order
--   away*     zset     per class: user → place, of those who are not there just now
-- ARGV
--   lines...  string  the line of every class; bound: as many as there are classes
-- REPLY
--   BOARD numbers:[string] servers:[string] offers:int held:int lines:[string]   names and values; ids and rows; tickets out; places held; per line its length, how many are away, and the places of its marks, evenly spread from first to last
-- FLAGS idempotent

local world, servers, offers, grace, waiting, away = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local lines = {}
for at = 1, #ARGV do
  local length = redis.call('ZCARD', waiting .. ARGV[at])
  local marks, parts = {}, math.min(64, length - 1)
  for part = 0, parts do
    local rank = math.floor((length - 1) * part / math.max(1, parts))
    marks[#marks + 1] = string.format('%.0f', redis.call('ZRANGE', waiting .. ARGV[at], rank, rank, 'WITHSCORES')[2])
  end
  lines[#lines + 1] = tostring(length)
  lines[#lines + 1] = tostring(redis.call('ZCARD', away .. ARGV[at]))
  lines[#lines + 1] = table.concat(marks, ',')
end
return { 'BOARD', redis.call('HGETALL', world), redis.call('HGETALL', servers), redis.call('ZCARD', offers), redis.call('ZCARD', grace), lines }
