-- A life of a server is over: that is known for an hour, and of those whom it had let in at most `count` are let out by
-- a crash, and stand where they stood if they come back. Called again until nobody remains.
-- @include person_left
local function life_end(keys, id, life, count)
  redis.call('SADD', keys.ended .. id, life)
  redis.call('EXPIRE', keys.ended .. id, 3600)
  for _, user in ipairs(redis.call('SPOP', keys.inside .. id .. ':' .. life, count)) do
    local person = redis.call('HMGET', keys.people .. user, 'state', 'server', 'life')
    if person[1] == 'inside' and person[2] == id and person[3] == life then
      person_left(keys, user, 'crash')
    end
  end
end
