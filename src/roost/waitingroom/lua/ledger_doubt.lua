-- The store lost writes, as the report of server `id` proves: every other row is in doubt until its server reports
-- again, and nobody is admitted meanwhile.
-- @include row_unpack
-- @include row_with
-- @include server_keep
local function ledger_doubt(keys, id)
  redis.call('HINCRBY', keys.world, 'lost_writes', 1)
  local rows = redis.call('HGETALL', keys.servers)
  for at = 1, #rows, 2 do
    local other, row = rows[at], row_unpack(rows[at + 1])
    if other ~= id and row.doubt == 0 then
      server_keep(keys, other, row, row_with(row, { doubt = 1 }))
    end
  end
end
