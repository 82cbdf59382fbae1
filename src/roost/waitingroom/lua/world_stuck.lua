-- Count the ticks at which no holder of a ticket could have got in: no gateway was there, or no server that takes users had
-- room. A ticket that ends after such a tick is no no-show.
local function world_stuck(keys, ctx)
  local kept = redis.call('HMGET', keys.world, 'cap', 'inside')
  if not ctx.is_heard or tonumber(kept[1] or '0') <= tonumber(kept[2] or '0') then
    redis.call('HINCRBY', keys.world, 'stuck', 1)
  end
end
