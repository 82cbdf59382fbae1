-- The most people who could ever enter together: what the open servers can take while nobody is on them, and no more than
-- the operator's limit less the people on closed ones, who may stay for as long as they like.
-- @include row_unpack
-- @include most_inside
local function party_limit(keys)
  local capacity, closed = 0, 0
  for _, packed in ipairs(redis.call('HVALS', keys.servers)) do
    local row = row_unpack(packed)
    if row.open == 1 then
      capacity = capacity + row.capacity
    else
      closed = closed + most_inside(row)
    end
  end
  return math.min(capacity, tonumber(redis.call('HGET', keys.world, 'limit') or capacity + closed) - closed)
end
