-- Put a list into random order, in place.
local function shuffle(list, seed)
  math.randomseed(seed % 2147483647)
  for at = #list, 2, -1 do
    local pick = math.random(at)
    list[at], list[pick] = list[pick], list[at]
  end
end
