-- Mark an instance as suspect in its beat, its end then being due half a lease later; false if it was
-- marked already or has no beat.
local function instance_suspect(leases, beats, id, entry)
  local beat = redis.call('HGET', beats .. entry.place, id)
  if not beat or string.sub(beat, 1, 13) ~= '{"suspect":0,' then
    return false
  end
  redis.call('HSET', beats .. entry.place, id, '{"suspect":1,' .. string.sub(beat, 14))
  redis.call('ZINCRBY', leases, entry.ttl_ms / 2, id)
  return true
end
