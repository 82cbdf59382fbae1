-- The epoch of a new grant: above all that the record has seen (its own, and that of a move), above what the caller has
-- seen, and not below the store's clock in µs: so it rises also over a record that was lost.
local function epoch_above(record, seen, now)
  return math.max(record.e + 1, record.ne + 1, seen + 1, now)
end
