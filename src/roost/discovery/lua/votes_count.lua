-- What more than half of the `assigned` checkers say of an instance: true for unhealthy, false for healthy, nil where no
-- side has the majority.
local function votes_count(votes, assigned)
  local unhealthy, healthy = 0, 0
  for _, checker in ipairs(assigned) do -- bound: three
    unhealthy = unhealthy + (votes[checker] == 'unhealthy' and 1 or 0)
    healthy = healthy + (votes[checker] == 'healthy' and 1 or 0)
  end
  if unhealthy * 2 > #assigned then
    return true
  elseif healthy * 2 > #assigned then
    return false
  end
end
