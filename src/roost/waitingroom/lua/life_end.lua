-- A life of a server is over: that is known for an hour, of the last hundred lives, and of those whom it had let in at
-- most `count` are let out by a crash, and stand where they stood if they come back. Called again until nobody remains.
-- Returns how many were let out.
-- @include int
-- @include person_left
local function life_end(keys, now, id, life, count)
  redis.call('ZADD', keys.ended .. id, 'NX', int(now), life)
  redis.call('ZREMRANGEBYRANK', keys.ended .. id, 0, -101)
  redis.call('EXPIRE', keys.ended .. id, 3600)
  local users = redis.call('SPOP', keys.inside .. id .. ':' .. life, count)
  for _, user in ipairs(users) do
    local person = redis.call('HMGET', keys.people .. user, 'state', 'server', 'life')
    if person[1] == 'inside' and person[2] == id and person[3] == life then
      person_left(keys, user, 'crash')
    end
  end
  return #users
end
