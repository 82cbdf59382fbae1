-- What `tombstone_pack` packed; nil where there is no tombstone. `clock_ms`, the lease time of the end, is nil in one
-- that an earlier version packed.
local function tombstone_unpack(packed)
  local cause, life, at_ms, service, clock_ms = string.match(packed or '', '^([^\t]+)\t(%d+)\t(%d+)\t([^\t]+)\t?(%d*)$')
  return cause and { cause = cause, life = life, at_ms = at_ms, service = service, clock_ms = tonumber(clock_ms) }
end
