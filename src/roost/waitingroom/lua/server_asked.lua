-- Take out whom a life of a server is to say whether they are still there: user and connection in turn, bound: 100
-- people.
local function server_asked(keys, id, life)
  local asked = {}
  for _, user in ipairs(redis.call('SPOP', keys.asking .. id .. ':' .. life, 100)) do
    local person = redis.call('HMGET', keys.people .. user, 'state', 'server', 'life', 'conn')
    if person[1] == 'inside' and person[2] == id and person[3] == life then
      asked[#asked + 1] = user
      asked[#asked + 1] = person[4]
    end
  end
  return asked
end
