-- The place of somebody who comes before the opening of a world, nil once it is open: drawn by the world's seed and
-- who they are, so that coming early, late or often changes nothing.
-- @include int
local function place_lot(keys, ctx, user)
  if ctx.now >= ctx.opens_at then
    return nil
  end
  local kept = redis.call('HMGET', keys.world, 'seed', 'lots_from')
  local lot = tonumber(string.sub(redis.sha1hex(kept[1] .. user), 1, 8), 16)
  return int(kept[2] + lot)
end
