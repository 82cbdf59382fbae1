-- The row of a server, nil if there is none.
-- @include row_unpack
local function server_row(keys, kind, id)
  local packed = redis.call('HGET', keys.servers, kind .. ':' .. id)
  return packed and row_unpack(packed)
end
