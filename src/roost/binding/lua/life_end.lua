-- A life of a server is over, for good: it may not beat, take or keep anybody. That is known for a day, of the last hundred
-- lives. Whom it held are placed anew when they come, or by the leader, which finds it among the orphans; returns how many.
-- @include int
-- @include server_row
local function life_end(keys, ctx, kind, id, life)
  redis.call('ZADD', keys.buried .. kind .. ':' .. id, 'NX', int(ctx.now), life)
  redis.call('ZREMRANGEBYRANK', keys.buried .. kind .. ':' .. id, 0, -101)
  redis.call('EXPIRE', keys.buried .. kind .. ':' .. id, 86400)
  local row = server_row(keys, kind, id)
  if row and row.life == life then
    redis.call('HDEL', keys.servers, kind .. ':' .. id)
    redis.call('ZREM', keys.ranking .. kind, id)
  end
  local users = redis.call('ZCARD', keys.binders .. kind .. ':' .. id .. ':' .. life)
  if users > 0 then
    redis.call('SADD', keys.orphans, kind .. ':' .. id .. ':' .. life)
  end
  return users
end
