-- What a server has reported under a life that the leader has not written, as a row; nil if nothing.
-- @include row_unpack
local function server_pending(keys, id)
  local packed = redis.call('HGET', keys.pending, id)
  return packed and row_unpack(packed) or nil
end
