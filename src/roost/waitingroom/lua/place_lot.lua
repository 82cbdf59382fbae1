-- The place of somebody who comes before the opening of a world, nil once it is open: drawn by the world's seed and
-- who they are, so that coming early, late or often changes nothing.
local function place_lot(keys, now, user)
  local kept = redis.call('HMGET', keys.world, 'opens_at', 'seed', 'lots_from')
  if not kept[1] or now >= tonumber(kept[1]) then
    return nil
  end
  local lot = tonumber(string.sub(redis.sha1hex(kept[2] .. user), 1, 8), 16)
  return string.format('%.0f', kept[3] + lot)
end
