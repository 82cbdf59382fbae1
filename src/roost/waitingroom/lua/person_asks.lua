-- Somebody who is inside asks to come in: their server is to say, after its next report, whether they are still there.
-- It may have said that they left, and the store forgot it. Returns the server.
local function person_asks(keys, user)
  local kept = redis.call('HMGET', keys.people .. user, 'server', 'life')
  local asking = keys.asking .. kept[1] .. ':' .. kept[2]
  redis.call('SADD', asking, user)
  redis.call('EXPIRE', asking, 600)
  return kept[1]
end
