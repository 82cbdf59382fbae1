-- What `entry_pack` packed; nil where there is nothing, or nothing that could be read.
local function entry_unpack(packed)
  local service, life, nonce, name, ttl_ms, capacity =
    string.match(packed or '', '^([^\t]+)\t(%d+)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)$')
  return service and { service = service, life = life, nonce = nonce, name = name, ttl_ms = tonumber(ttl_ms),
    capacity = tonumber(capacity) }
end
