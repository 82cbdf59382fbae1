-- How many more people a server may let in now: none if it takes no new users. The one formula of room: the report, the
-- tick's recount, consume and the board (`Row.room` in model.py) use it.
-- @include most_inside
local function row_room(row)
  return row.open == 1 and math.max(0, row.capacity - most_inside(row)) or 0
end
