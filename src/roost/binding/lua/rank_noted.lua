-- Rank, once each, the servers that `seat` only noted in ctx.unranked: for scripts that seat many users of one type.
-- @include server_row
-- @include server_rank
local function rank_noted(keys, ctx, kind)
  for id in pairs(ctx.unranked) do
    local row = server_row(keys, kind, id)
    if row then
      server_rank(keys, ctx, kind, id, row)
    end
  end
end
