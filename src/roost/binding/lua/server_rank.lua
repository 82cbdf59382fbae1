-- Rank a server for placing: by its users; behind all that have room if it is full (10^12), and last of all if it takes no
-- new users or its lease has ended (2 × 10^12).
local function server_rank(keys, ctx, kind, id, row)
  local rank = redis.call('ZCARD', keys.binders .. kind .. ':' .. id .. ':' .. row.life)
  if row.open ~= '1' or row.lease <= ctx.clock then
    rank = rank + 2e12
  elseif row.capacity > 0 and rank >= row.capacity then
    rank = rank + 1e12
  end
  redis.call('ZADD', keys.ranking .. kind, rank, id)
end
