-- Write a server's row, and rank it by what it says now.
-- @include row_pack
-- @include server_rank
local function server_keep(keys, ctx, kind, id, row)
  redis.call('HSET', keys.servers, kind .. ':' .. id, row_pack(row))
  server_rank(keys, ctx, kind, id, row)
end
