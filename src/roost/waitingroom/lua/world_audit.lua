-- The promise, counted again from the rows: what was issued must fit, whatever the sums say. What does not is counted
-- in the world's `overadmit`.
-- @include row_unpack
-- @include most_inside
local function world_audit(keys, issued)
  if issued == 0 then
    return
  end
  local capacity, inside = 0, 0
  for _, packed in ipairs(redis.call('HVALS', keys.servers)) do
    local row = row_unpack(packed)
    capacity, inside = capacity + row.capacity, inside + most_inside(row)
  end
  capacity = math.min(capacity, tonumber(redis.call('HGET', keys.world, 'limit') or capacity))
  local over = inside + redis.call('ZCARD', keys.offers) + redis.call('ZCARD', keys.grace) - capacity
  if over > 0 then
    redis.call('HINCRBY', keys.world, 'overadmit', math.min(issued, over))
  end
end
