-- The life of a server that the leader wrote last, and whether it takes new users (1) or not (0); nil if it wrote none.
local function server_known(keys, id)
  local life, open = string.match(redis.call('HGET', keys.known, id) or '', '^(%d+)\t(%d)$')
  return life, tonumber(open)
end
