-- The first people of a line who are there, in groups that enter together, up to `wanted` people; and whether the
-- look should be repeated at once, because people who were put aside hid the rest. At most `looks` are looked at.
--
-- A group is one person, or a whole party: its members stand at the same place. One that is not complete, or larger
-- than the world, is passed over and stays; five minutes after they came its members go on alone. Whoever is late is
-- put aside.
local function line_heads(keys, waiting_line, away_line, wanted, looks, clock, late_ms, cap)
  local groups, taken, aside = {}, 0, 0
  if wanted <= 0 then
    return groups, 0
  end
  local looked = redis.call('ZRANGE', waiting_line, 0, looks - 1, 'WITHSCORES')
  local party, place = {}, nil
  for at = 1, #looked, 2 do
    local user, seq = looked[at], looked[at + 1]
    local person = redis.call('HMGET', keys.people .. user, 'due', 'size', 'at')
    if clock > tonumber(person[1] or '0') + late_ms then
      redis.call('ZREM', waiting_line, user)
      redis.call('ZADD', away_line, seq, user)
      redis.call('HSET', keys.people .. user, 'state', 'away')
      aside = aside + 1
    else
      if seq ~= place then
        party, place = {}, seq
      end
      local size = tonumber(person[2] or '1')
      local goes_alone = clock > tonumber(person[3] or '0') + 300000
      local ready = {}
      if size <= 1 then
        ready = { { user } }
      else
        party[#party + 1] = user
        if #party >= size and size <= cap then
          ready, party = { party }, {}
        elseif goes_alone and looked[at + 3] ~= seq then
          for _, member in ipairs(party) do
            redis.call('HDEL', keys.people .. member, 'size')
            ready[#ready + 1] = { member }
          end
        end
      end
      for _, group in ipairs(ready) do
        groups[#groups + 1] = group
        taken = taken + #group
      end
      if taken >= wanted then
        return groups, 0
      end
    end
  end
  return groups, aside > 0 and #looked == looks * 2 and 1 or 0
end
