-- A person has left: what is known of them stays for ten minutes, in case they ask again.
local function person_left(keys, user, cause)
  local person = keys.people .. user
  redis.call('HSET', person, 'state', 'left', 'cause', cause)
  redis.call('HDEL', person, 'tid', 'exp', 'due', 'shown', 'server', 'life', 'conn', 'number', 'eta', 'spared', 'stuck', 'size', 'trace')
  redis.call('EXPIRE', person, 600)
end
