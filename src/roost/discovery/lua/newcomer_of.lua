-- Whether a registration is that of a newcomer: nobody has its id or its name, it names no former life, and no suspect of
-- its service could make it end a panic. Nearly all are. Such need nothing of each other and are put together.
--
-- `newcomers` are those before it that are not in place yet; who has to do with one of them is none itself.
local function newcomer_of(keys, newcomers, given)
  local id, name, service = given.id, given.name, given.service
  local known_as = name ~= '' and name or string.match(service, '^[^:]*') .. ':' .. id
  local bare = name ~= '' and string.match(name, ':(.*)$') or id
  local seen = newcomers.seen
  if given.former_life ~= '' or seen['id ' .. id] or seen['id ' .. bare] or seen['name ' .. known_as] then
    return false
  end
  if seen['calm ' .. service] == nil then
    seen['calm ' .. service] = redis.call('EXISTS', keys.suspects .. service) == 0
  end
  if not seen['calm ' .. service] or redis.call('HEXISTS', keys.index, id) == 1
    or redis.call('HEXISTS', keys.names, known_as) == 1
    or bare ~= id and redis.call('HEXISTS', keys.index, bare) == 1 then
    return false
  end
  seen['id ' .. id], seen['name ' .. known_as] = true, true
  return true
end
