-- Put what is now known of a server in place of what `was` (nil: unknown before, or gone now), and bring the sums of
-- the world along: capacity, the most people inside, servers in doubt. The one way to change the ledger.
local function server_keep(keys, id, was, is)
  local cap, inside, doubt = 0, 0, 0
  if was then
    -- Not `-x`: Redis 7.0 would take -0 for a text.
    cap, inside, doubt = 0 - was.cap, 0 - (was.n + was.c - was.k), 0 - was.doubt
  end
  if is then
    cap, inside, doubt = cap + is.cap, inside + is.n + is.c - is.k, doubt + is.doubt
    redis.call('HSET', keys.servers, id,
      table.concat({ is.life, is.cap, is.n, is.k, is.c, is.number, is.doubt, is.url }, '\t'))
  else
    redis.call('HDEL', keys.servers, id)
  end
  redis.call('HINCRBY', keys.world, 'cap', cap)
  redis.call('HINCRBY', keys.world, 'inside', inside)
  redis.call('HINCRBY', keys.world, 'doubt', doubt)
end
