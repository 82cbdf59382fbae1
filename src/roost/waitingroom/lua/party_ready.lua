-- The groups that may enter now of a party whose present members were found in the line, the last of them with the
-- party's `size` and the time at which they came: all together, or none while the party is not complete or larger than
-- the world. Five minutes after they came its members go on alone, once all who are there were found (`is_last`).
local function party_ready(keys, ctx, party, size, came_ms, is_last)
  if #party >= size and size <= ctx.capacity then
    return { party }
  end
  local alone = {}
  if is_last and ctx.clock > came_ms + 300000 then
    for _, member in ipairs(party) do
      redis.call('HDEL', keys.people .. member, 'size')
      alone[#alone + 1] = { member }
    end
  end
  return alone
end
