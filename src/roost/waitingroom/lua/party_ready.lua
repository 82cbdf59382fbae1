-- The groups that may enter now of a party whose present members were found in the line, the last of them with the
-- party's `size` and the time at which they came: all together, or none while the party is not complete or larger than
-- what can ever have room for it (`party_limit`), which is counted once for all parties of a tick. Five minutes after they came its members go on alone, once all who are there were found (`is_last`).
-- @include party_limit
local function party_ready(keys, ctx, party, size, came_ms, is_last)
  if #party >= size then
    ctx.party_limit = ctx.party_limit or party_limit(keys)
    if size <= ctx.party_limit then
      return { party }
    end
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
