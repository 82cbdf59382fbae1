-- Mark an instance as suspect in its beat; false if it was marked already or has none.
local function instance_suspect(beats, place, id)
  local beat = redis.call('HGET', beats .. place, id)
  if not beat or string.sub(beat, 1, 13) ~= '{"suspect":0,' then
    return false
  end
  redis.call('HSET', beats .. place, id, '{"suspect":1,' .. string.sub(beat, 14))
  return true
end
