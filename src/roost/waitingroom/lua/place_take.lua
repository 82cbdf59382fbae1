-- The place that somebody takes who has none, and its line: by lot before the opening, else the number that their
-- `receipt` proves or the next one; with a `party` the place that its members share. Both may be false.
-- @include place_lot
-- @include place_number
-- @include party_place
local function place_take(keys, ctx, user, line, receipt, party)
  local seq = place_lot(keys, ctx, user) or place_number(keys, ctx, receipt)
  if party then
    return party_place(keys.parties .. party, seq, line)
  end
  return seq, line
end
