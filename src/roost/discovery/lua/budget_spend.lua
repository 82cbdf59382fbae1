-- Keep that so many more instances ended in this `second`: what `removal_budget` reads. Bound: the seconds of its window.
-- @include int
local function budget_spend(keys, lately, second, ended)
  lately[second] = (lately[second] or 0) + ended
  local parts = {}
  for at, count in pairs(lately) do
    parts[#parts + 1] = at .. ':' .. int(count)
  end
  redis.call('HSET', keys.meta, 'ended_lately', table.concat(parts, ' '))
end
