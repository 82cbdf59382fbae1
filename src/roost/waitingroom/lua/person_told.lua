-- Read what `person_place` needs, and tell a waiting person what it says.
-- @include person_place
local function person_told(keys, person, user, now, clock, tat)
  local kept = redis.call('HMGET', person, 'state', 'seq', 'line', 'shown')
  local line = kept[3] or ''
  local numbers = redis.call('HMGET', keys.world, 'opens_at', 'fast' .. line, 'slow' .. line)
  return person_place(keys, person, user, now, clock, kept, numbers, tat)
end
