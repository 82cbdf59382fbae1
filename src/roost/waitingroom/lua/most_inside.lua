-- The most people that may be on a server: those it reported, and every consume since that the report does not count.
-- Who left since the report only makes this too high.
local function most_inside(row)
  return row.reported + row.consumed - row.counted
end
