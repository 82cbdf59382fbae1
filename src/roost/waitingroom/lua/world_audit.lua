-- The promise, counted again from the rows: what was issued must fit, whatever the sums say. What does not is counted
-- in the world's `overadmit`.
-- @include row_unpack
-- @include most_inside
-- @include row_room
local function world_audit(keys, issued)
  if issued == 0 then
    return
  end
  local room, inside = 0, 0
  for _, packed in ipairs(redis.call('HVALS', keys.servers)) do
    local row = row_unpack(packed)
    room, inside = room + row_room(row), inside + most_inside(row)
  end
  room = math.min(room, tonumber(redis.call('HGET', keys.world, 'limit') or room + inside) - inside)
  local over = redis.call('ZCARD', keys.offers) + redis.call('ZCARD', keys.grace) - room
  if over > 0 then
    redis.call('HINCRBY', keys.world, 'overadmit', math.min(issued, over))
  end
end
