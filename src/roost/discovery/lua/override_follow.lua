-- A drain that was ordered for one life of an instance holds for the next, if that is the same process, which registers
-- again by itself: it was away for a while and holds what it held. Under a life that another process begins it is over.
local function override_follow(keys, id, name, former_life, life)
  local key, was = name ~= '' and name or id, '"drainLife":"' .. former_life .. '"'
  local ordered = redis.call('HGET', keys.overrides, key)
  local from, to = string.find(ordered or '', was, 1, true)
  if from then
    local is = '"drainLife":"' .. life .. '"'
    redis.call('HSET', keys.overrides, key, string.sub(ordered, 1, from - 1) .. is .. string.sub(ordered, to + 1))
  end
end
