-- Instance id → how many checkers find it unhealthy in its present life.
-- @include instance_entry
local function votes_count(keys)
  local counts = {}
  for _, opinion in ipairs(redis.call('HVALS', keys.votes)) do
    local named = {}
    for id, life in string.gmatch(opinion, '([^\t\n]+)\t(%d+)') do
      local entry = instance_entry(keys, id)
      if entry and entry.life == life and not named[id] then
        named[id] = true
        counts[id] = (counts[id] or 0) + 1
      end
    end
  end
  return counts
end
