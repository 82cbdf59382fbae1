-- The row of a server in the ledger, see `row_unpack`; nil if it is not there.
-- @include row_unpack
local function server_row(keys, id)
  local packed = redis.call('HGET', keys.servers, id)
  return packed and row_unpack(packed) or nil
end
