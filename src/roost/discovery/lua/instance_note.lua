-- Write a line into the instance's history: time in µs, event, life, status. The newest 32 are kept.
-- @include int
local function instance_note(keys, now, id, entry, event, status)
  local line = table.concat({ int(now), event, entry.life, status }, '\t')
  if redis.call('RPUSH', keys.history .. id, line) > 32 then
    redis.call('LTRIM', keys.history .. id, -32, -1)
  end
end
