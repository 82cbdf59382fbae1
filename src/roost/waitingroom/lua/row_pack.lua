-- A server's row as the ledger keeps it; `row_unpack` explains the fields, and `model.py` reads them too.
-- @include join_fields
local function row_pack(row)
  return join_fields({ row.life, row.capacity, row.reported, row.counted, row.consumed, row.number, row.doubt, row.open, row.url })
end
