-- The leader shows this life of a server, and whether it takes new users (1) or not (0). A life before it ends. One that
-- has not beaten here yet has no lease: it takes nobody until it does.
-- @include server_row
-- @include server_keep
-- @include life_end
local function life_show(keys, ctx, kind, id, life, open)
  local row = server_row(keys, kind, id)
  if row and row.life ~= life then
    life_end(keys, ctx, kind, id, row.life)
    row = nil
  end
  if row and row.open == open then
    return
  end
  local is_new = not row or row.open == '?'
  row = row or { life = life, capacity = 0, version = '', lease = 0 }
  row.open, row.first = open, is_new and ctx.clock or row.first
  server_keep(keys, ctx, kind, id, row)
end
