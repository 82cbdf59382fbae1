-- Keep a report of a life that the leader has not written, apart from the ledger: it brings no capacity, fences and
-- displaces nobody, and counts once the leader writes that life. At most 256 servers wait so; beyond that one of them
-- makes room and must report again. An older report than the one that waits is not kept.
-- @include row_pack
-- @include server_pending
local function report_pending(keys, id, row)
  local was = server_pending(keys, id)
  if was and was.life == row.life and tonumber(row.number) <= tonumber(was.number) then
    return
  end
  if not was and redis.call('HLEN', keys.pending) >= 256 then
    redis.call('HDEL', keys.pending, redis.call('HRANDFIELD', keys.pending))
  end
  redis.call('HSET', keys.pending, id, row_pack(row))
end
