-- The leader shows this life of a server, and whether it takes new users. The life before it has ended; a report that
-- waited for it counts from now on.
-- @include server_row
-- @include server_keep
-- @include server_pending
-- @include row_with
-- @include pending_forget
local function server_show(keys, now, id, life, open)
  redis.call('HSET', keys.known, id, life .. '\t' .. open)
  local was = server_row(keys, id)
  if was then
    if was.open ~= open then
      server_keep(keys, id, was, row_with(was, { open = open }))
    end
    return
  end
  local waits = server_pending(keys, id)
  if waits and waits.life == life then
    server_keep(keys, id, nil, row_with(waits, { open = open }))
    pending_forget(keys, id)
  end
end
