-- An instance as the hash `index` holds it; `instance_entry` reads it. Every field is a text.
local function entry_pack(entry)
  return table.concat({ entry.service, entry.life, entry.nonce, entry.name, entry.ttl_ms, entry.capacity }, '\t')
end
