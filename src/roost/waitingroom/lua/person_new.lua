-- Write down somebody who takes a place, in place of whatever was known of them but how often they asked.
local function person_new(person, user, clock, seq, line, nickname, region, size)
  local tat = redis.call('HGET', person, 'tat')
  redis.call('DEL', person)
  redis.call('HSET', person, 'state', 'waiting', 'seq', seq, 'at', string.format('%.0f', clock))
  local given = { tat = tat or '', line = line, nick = nickname ~= user and nickname or '', region = region,
    size = size > 1 and size or '' }
  for name, value in pairs(given) do
    if value ~= '' then
      redis.call('HSET', person, name, value)
    end
  end
end
