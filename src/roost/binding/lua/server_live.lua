-- The row of a server if this very life of it is alive: it has not been buried, and its lease has not ended.
-- @include server_row
local function server_live(keys, ctx, kind, id, life)
  local row = id ~= '' and server_row(keys, kind, id)
  return row and row.life == life and row.lease > ctx.clock and row or nil
end
