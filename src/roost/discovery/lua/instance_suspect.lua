-- Mark an instance as silent in its beat, its end then being due half a lease later. False if it was marked
-- already or has no beat; else also whether it was above all suspicion until now.
--
-- `suspect` in a beat: 0 well, 1 silent, 2 unhealthy by the checkers' votes, 3 both.
local function instance_suspect(keys, id, entry)
  local beat = redis.call('HGET', keys.beats .. entry.place, id)
  local suspect = tonumber(string.match(beat or '', '^{"suspect":(%d),'))
  if not suspect or suspect % 2 == 1 then
    return false
  end
  redis.call('HSET', keys.beats .. entry.place, id, '{"suspect":' .. suspect + 1 .. string.sub(beat, 13))
  redis.call('ZINCRBY', keys.leases, entry.ttl_ms / 2, id)
  return true, suspect == 0
end
