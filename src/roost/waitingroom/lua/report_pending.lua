-- Keep a report of a life that the leader has not written, apart from the ledger: it brings no capacity, fences and
-- displaces nobody, and counts once the leader writes that life. At most 256 servers wait so; beyond that one of them
-- makes room and must report again. An older report than the one that waits is not kept. When the last one came is kept
-- by the lease clock, see `pending_expire`.
-- @include int
-- @include row_pack
-- @include pending_forget
-- @include server_pending
local function report_pending(keys, ctx, id, row)
  redis.call('ZADD', keys.pending_at, int(ctx.clock), id)
  local was = server_pending(keys, id)
  if was and was.life == row.life and tonumber(row.number) <= tonumber(was.number) then
    return
  end
  if not was and redis.call('HLEN', keys.pending) >= 256 then
    pending_forget(keys, redis.call('HRANDFIELD', keys.pending))
  end
  redis.call('HSET', keys.pending, id, row_pack(row))
end
