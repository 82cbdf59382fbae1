-- Why an instance must not come back under `life`: it was removed on purpose in that life or a later one. Nil if
-- it may. An empty `life` stands for every life.
-- @include tombstone_unpack
local function removal_cause(keys, id, life)
  local tombstone = tombstone_unpack(redis.call('HGET', keys.gone, id))
  if not tombstone or tombstone.cause == 'no-response' then
    return nil
  end
  return (life == '' or tonumber(life) <= tonumber(tombstone.life)) and tombstone.cause or nil
end
