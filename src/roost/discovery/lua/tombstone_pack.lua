-- An end as the hash `gone` holds it; `tombstone_unpack` reads it. `at_ms`, `clock_ms` and `life` are strings of digits.
local function tombstone_pack(tombstone)
  return table.concat({ tombstone.cause, tombstone.life, tombstone.at_ms, tombstone.service, tombstone.clock_ms }, '\t')
end
