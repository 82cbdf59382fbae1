-- The first people of a line who are there, in groups that enter together, `wanted` people at most; and whether the
-- look ended before it was known that there are no more. Whoever is late is put aside: at most `looks` are looked at.
--
-- A group is one person, or a whole party: its members stand at the same place. One that is not complete is passed
-- over and stays; one for which there is no room yet is waited for, so that it comes in at all.
local function line_heads(waiting_line, away_line, people, wanted, looks, clock, late_ms)
  local groups, taken = {}, 0
  if wanted <= 0 then
    return groups, 0
  end
  local looked = redis.call('ZRANGE', waiting_line, 0, looks - 1, 'WITHSCORES')
  local group, place = {}, nil
  for at = 1, #looked, 2 do
    local user, seq = looked[at], looked[at + 1]
    local person = redis.call('HMGET', people .. user, 'due', 'size')
    if clock > tonumber(person[1] or '0') + late_ms then
      redis.call('ZREM', waiting_line, user)
      redis.call('ZADD', away_line, seq, user)
      redis.call('HSET', people .. user, 'state', 'away')
    else
      if seq ~= place then
        group, place = {}, seq
      end
      group[#group + 1] = user
      local size = math.max(1, tonumber(person[2] or '1'))
      if size == 1 then
        group = { user }
      end
      if #group == size then
        if taken + size > wanted then
          return groups, 0
        end
        groups[#groups + 1] = group
        taken = taken + size
        group = {}
        if taken == wanted then
          return groups, 0
        end
      end
    end
  end
  return groups, #looked == looks * 2 and 1 or 0
end
