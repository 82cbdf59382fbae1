-- Set (change 2) or clear (change -2) in a beat what the checkers decided, and tell it if it makes a difference.
-- @include instance_note
-- @include instance_tell
local function instance_turn(keys, now, id, entry, change)
  local beat = redis.call('HGET', keys.beats .. entry.place, id)
  local suspect, status = string.match(beat or '', '^{"suspect":(%d),"status":"([^"]+)"')
  if not suspect or (suspect + 0 >= 2) == (change > 0) then
    return
  end
  local turned = suspect + change
  beat = '{"suspect":' .. turned .. string.sub(beat, 13)
  status = turned > 0 and 'suspect' or status
  redis.call('HSET', keys.beats .. entry.place, id, beat)
  instance_note(keys, now, id, change > 0 and 'unhealthy' or 'recovered', entry.life, status)
  if turned == 0 or suspect == '0' then
    instance_tell(keys, now, id, entry, 'changed', status, redis.call('HGET', keys.records .. entry.place, id) or '', beat)
  end
end
