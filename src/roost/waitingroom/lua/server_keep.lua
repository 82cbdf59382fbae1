-- Put the row `is` of a server in place of the row that `was` (nil: unknown before, or gone now), and bring the sums of
-- the world along: people inside and room (`cap`), the most people inside, servers in doubt. One that takes no new users
-- gives no room, so its doubt holds nobody up. The one way to change the ledger.
-- @include row_pack
-- @include row_room
-- @include most_inside
local function server_keep(keys, id, was, is)
  local capacity, inside, doubt = 0, 0, 0
  if was then
    -- Not `-x`: Redis 7.0 would take -0 for a text.
    capacity, inside, doubt = 0 - most_inside(was) - row_room(was), 0 - most_inside(was), 0 - was.doubt * was.open
  end
  if is then
    capacity, inside, doubt = capacity + most_inside(is) + row_room(is), inside + most_inside(is), doubt + is.doubt * is.open
    redis.call('HSET', keys.servers, id, row_pack(is))
  else
    redis.call('HDEL', keys.servers, id)
  end
  for name, change in pairs({ cap = capacity, inside = inside, doubt = doubt }) do
    if change ~= 0 then -- a thousand servers that close at once change one sum, not three
      redis.call('HINCRBY', keys.world, name, change)
    end
  end
end
