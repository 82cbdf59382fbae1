-- The server that the person is inside, nil if they are in none: the one that let them in must still live the same life.
-- @include server_row
local function person_server(keys, user)
  local kept = redis.call('HMGET', keys.people .. user, 'state', 'server', 'life')
  local row = kept[1] == 'inside' and server_row(keys, kept[2])
  if row and row.life == kept[3] then
    return kept[2]
  end
  return nil
end
