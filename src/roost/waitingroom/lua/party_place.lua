-- The place that a party shares: the first to ask makes `seq` the place of all.
-- Returns place and line. What is kept of a party is forgotten ten minutes after a member came last.
local function party_place(party, seq, line)
  redis.call('HSETNX', party, 'seq', seq)
  redis.call('HSETNX', party, 'line', line)
  redis.call('EXPIRE', party, 600)
  local kept = redis.call('HMGET', party, 'seq', 'line')
  return kept[1], kept[2]
end
