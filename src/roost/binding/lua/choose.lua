-- The server that takes the next user: of two that `ctx.draw` picks among those with room the one with fewer users, so that
-- a new, empty one is not flooded. While it is new (slow start: the first `ctx.slow_ms`) it yields to the other, at first
-- nine times out of ten. Where neither fits: the first that does, fewest users first; bound: the servers of the type.
-- Returns id and row; or nil and why there is none.
-- @include server_fits
local function choose(keys, ctx, kind, version)
  local ranking = keys.ranking .. kind
  local count = redis.call('ZCOUNT', ranking, '-inf', '(1000000000000')
  if count == 0 then
    local best = redis.call('ZRANGE', ranking, 0, 0, 'WITHSCORES')
    local rank = tonumber(best[2])
    return nil, not rank and 'none registered' or rank >= 2e12 and 'none willing' or 'all full'
  end
  local luck = math.floor(ctx.draw / count / count) % 1000
  local first, second = ctx.draw % count, math.floor(ctx.draw / count) % count
  if first == second then
    second = (first + 1) % count
  end
  local found, taken, fewest, was_new
  local pair = redis.call('ZRANGE', ranking, math.min(first, second), math.min(first, second), 'WITHSCORES')
  if first ~= second then
    local other = redis.call('ZRANGE', ranking, math.max(first, second), math.max(first, second), 'WITHSCORES')
    pair[3], pair[4] = other[1], other[2]
  end
  for at = 1, #pair, 2 do
    local row = server_fits(keys, ctx, kind, pair[at], version)
    if row then
      local yields = luck >= 100 and luck * ctx.slow_ms > (ctx.clock - row.first) * 1000
      local users = tonumber(pair[at + 1])
      if not found or (was_new and not yields) or (was_new == yields and users < fewest) then
        found, taken, fewest, was_new = pair[at], row, users, yields
      end
    end
  end
  if found then
    return found, taken
  end
  for _, id in ipairs(redis.call('ZRANGE', ranking, 0, count - 1)) do
    local row = server_fits(keys, ctx, kind, id, version)
    if row then
      return id, row
    end
  end
  return nil, version ~= '' and 'version' or 'none willing'
end
