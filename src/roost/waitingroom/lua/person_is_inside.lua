-- Whether the server that let the person in still lives the same life.
-- @include server_record
local function person_is_inside(keys, person)
  local kept = redis.call('HMGET', person, 'state', 'server', 'life')
  if kept[1] ~= 'inside' then
    return false
  end
  local server = server_record(keys, kept[2])
  return server ~= nil and server.life == kept[3] and server.url ~= '-' -- the row that `drop` leaves
end
