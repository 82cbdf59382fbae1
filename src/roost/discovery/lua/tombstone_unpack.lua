-- What `tombstone_pack` packed; nil where there is no tombstone.
local function tombstone_unpack(packed)
  local cause, life, at_ms, service = string.match(packed or '', '^([^\t]+)\t(%d+)\t(%d+)\t(.+)$')
  return cause and { cause = cause, life = life, at_ms = at_ms, service = service }
end
