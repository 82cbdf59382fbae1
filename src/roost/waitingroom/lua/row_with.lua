-- A copy of a server's row in which some fields have other values.
local function row_with(row, changes)
  local copy = {}
  for name, value in pairs(row) do
    copy[name] = value
  end
  for name, value in pairs(changes) do
    copy[name] = value
  end
  return copy
end
