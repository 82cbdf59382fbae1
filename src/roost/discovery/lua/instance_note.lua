-- Write a line into the instance's history: time in µs, event, life, status. The newest 32 are kept.
local function instance_note(keys, now, id, event, life, status)
  local line = string.format('%.0f', now) .. '\t' .. event .. '\t' .. life .. '\t' .. status
  if redis.call('RPUSH', keys.history .. id, line) > 32 then
    redis.call('LTRIM', keys.history .. id, -32, -1)
  end
end
