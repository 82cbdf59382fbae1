-- The place that somebody takes who has none, its line, and how many come with them: the number that their `receipt` (or
-- false) proves, else by lot before the opening, else the next one; in a party of more than one the place that its
-- members share.
-- @include place_restored
-- @include place_lot
-- @include place_number
-- @include party_place
local function place_take(keys, ctx, user, line, receipt, party, size)
  local seq = place_restored(keys, ctx, receipt) or place_lot(keys, ctx, user) or place_number(keys, ctx)
  if size > 1 then
    return party_place(keys.parties .. party, user, seq, line, size)
  end
  return seq, line, 1
end
