-- An instance as the hash `index` holds it; `instance_entry` reads it.
-- @include int
local function entry_pack(entry)
  return table.concat({ entry.service, entry.life, entry.nonce, entry.name, int(entry.ttl_ms), int(entry.capacity) }, '\t')
end
