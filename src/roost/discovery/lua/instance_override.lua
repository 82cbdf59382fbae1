-- The override that an operator set, as JSON; empty if none. It is kept under the name, which outlives the id.
local function instance_override(keys, id, entry)
  return redis.call('HGET', keys.overrides, entry.name ~= '' and entry.name or id) or ''
end
