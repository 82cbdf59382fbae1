-- Somebody of a party will not come: the others, who stand at the same place, wait for one less.
-- Bound: a party has at most 8 members.
local function party_shrink(keys, line, seq)
  local standing = {
    redis.call('ZRANGEBYSCORE', keys.waiting .. line, seq, seq, 'LIMIT', 0, 8),
    redis.call('ZRANGEBYSCORE', keys.away .. line, seq, seq, 'LIMIT', 0, 8),
  }
  for _, users in ipairs(standing) do
    for _, user in ipairs(users) do
      if redis.call('HEXISTS', keys.people .. user, 'size') == 1 then
        redis.call('HINCRBY', keys.people .. user, 'size', -1)
      end
    end
  end
end
