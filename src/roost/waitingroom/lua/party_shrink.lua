-- Somebody of a party will not come: the others, who stand at the same place, wait for one less.
-- Bound: a party has at most 8 members.
local function party_shrink(keys, waiting_line, away_line, seq)
  for _, user in ipairs(redis.call('ZRANGEBYSCORE', waiting_line, seq, seq, 'LIMIT', 0, 8)) do
    if redis.call('HEXISTS', keys.people .. user, 'size') == 1 then
      redis.call('HINCRBY', keys.people .. user, 'size', -1)
    end
  end
  for _, user in ipairs(redis.call('ZRANGEBYSCORE', away_line, seq, seq, 'LIMIT', 0, 8)) do
    if redis.call('HEXISTS', keys.people .. user, 'size') == 1 then
      redis.call('HINCRBY', keys.people .. user, 'size', -1)
    end
  end
end
