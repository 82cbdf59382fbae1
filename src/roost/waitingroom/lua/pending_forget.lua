-- What a server has reported under a life that the leader has not written waits no more.
local function pending_forget(keys, id)
  redis.call('HDEL', keys.pending, id)
  redis.call('ZREM', keys.pending_at, id)
end
