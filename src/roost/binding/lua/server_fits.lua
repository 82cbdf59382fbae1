-- The row of a server that may take a new user now: open, alive, with room, and of `version` where one is asked for. One
-- that is ranked better than it is (its lease has ended since) gets its rank.
-- @include server_row
-- @include server_rank
local function server_fits(keys, ctx, kind, id, version)
  local row = server_row(keys, kind, id)
  if not row then
    redis.call('ZREM', keys.ranking .. kind, id)
    return nil
  end
  if row.open ~= '1' or row.lease <= ctx.clock then
    server_rank(keys, ctx, kind, id, row)
    return nil
  end
  if version ~= '' and row.version ~= version then
    return nil
  end
  return row
end
