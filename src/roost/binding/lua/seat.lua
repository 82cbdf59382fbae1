-- Take (`ZADD`) or give back a seat on a life of a server, and rank the server anew if that life is its present one, or
-- note in ctx.unranked that it is to be (see `rank_noted`). For `grant`, and for `freeze`, whose seat `grant` gives back or keeps: nothing else counts seats.
-- @include server_row
-- @include server_rank
local function seat(keys, ctx, record, id, life, is_taken)
  local binders = keys.binders .. record.kind .. ':' .. id .. ':' .. life
  if is_taken then
    redis.call('ZADD', binders, 0, record.user)
  else
    redis.call('ZREM', binders, record.user)
  end
  if ctx.unranked then
    ctx.unranked[id] = true
    return
  end
  local row = server_row(keys, record.kind, id)
  if row and row.life == life then
    server_rank(keys, ctx, record.kind, id, row)
  end
end
