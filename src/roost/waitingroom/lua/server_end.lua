-- A life of a server is over: its capacity, its people and its gap leave the ledger together. Its people are let out
-- `count` at a time; returns how many remain, and how many that were. Until nobody does it stays known as closed, which
-- tells the next leader that there is work left. What it reported before the leader wrote it waits no more. Another life of
-- the server stays.
-- @include life_end
-- @include server_row
-- @include server_known
-- @include server_keep
-- @include server_pending
-- @include pending_forget
local function server_end(keys, now, id, life, count)
  local let_out = life_end(keys, now, id, life, count)
  local was = server_row(keys, id)
  if was and was.life == life then
    server_keep(keys, id, was, nil)
  end
  local waits = server_pending(keys, id)
  if waits and waits.life == life then
    pending_forget(keys, id)
  end
  local remaining = redis.call('SCARD', keys.inside .. id .. ':' .. life)
  if server_known(keys, id) == life then
    if remaining > 0 then
      redis.call('HSET', keys.known, id, life .. '\t0')
    else
      redis.call('HDEL', keys.known, id)
    end
  end
  return remaining, let_out
end
