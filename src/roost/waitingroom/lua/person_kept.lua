-- What is kept of a person that every call of theirs needs; a field that is not there is false, the line of the base
-- class is empty.
local function person_kept(keys, user)
  local kept = redis.call('HMGET', keys.people .. user, 'state', 'seq', 'line', 'shown', 'tat')
  return { state = kept[1], seq = kept[2], line = kept[3] or '', shown = kept[4], tat = kept[5] }
end
