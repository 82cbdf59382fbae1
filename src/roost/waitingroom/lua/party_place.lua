-- The place that a party shares, its line, and how many the party has: the first to ask makes `seq` the place of all. A
-- party takes no more than its size: whoever comes beyond it stands alone. A member who lost the place and comes
-- again begins the party anew. What is kept of a party is forgotten ten minutes after a member came last.
local function party_place(party, user, seq, line, size)
  if redis.call('HEXISTS', party, 'u:' .. user) == 1 then
    redis.call('DEL', party)
  end
  local kept = redis.call('HMGET', party, 'seq', 'line', 'members')
  if tonumber(kept[3] or '0') >= size then
    return seq, line, 1
  end
  redis.call('HSET', party, 'seq', kept[1] or seq, 'line', kept[2] or line, 'u:' .. user, 1)
  redis.call('HINCRBY', party, 'members', 1)
  redis.call('EXPIRE', party, 600)
  return kept[1] or seq, kept[2] or line, size
end
