-- A person has left: what is known of them stays for ten minutes, for whoever asks again.
local function person_left(person, cause)
  redis.call('HSET', person, 'state', 'left', 'cause', cause)
  redis.call('HDEL', person, 'tid', 'exp', 'due', 'shown', 'server', 'life', 'conn', 'number', 'eta', 'spared', 'size')
  redis.call('EXPIRE', person, 600)
end
