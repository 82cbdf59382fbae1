-- A server's row as `servers` keeps it; `row_unpack` explains the fields, and `model.py` reads them too.
-- @include int
local function row_pack(row)
  return table.concat({ row.life, row.open, int(row.capacity), int(row.lease), int(row.first), row.version }, '\t')
end
