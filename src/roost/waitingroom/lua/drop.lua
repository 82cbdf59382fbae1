#!lua
-- A server has ended: its capacity, its people and its gap leave the ledger together.
--
-- Called until nobody remains: the people that it had let in are let out one batch after the other, and stand where
-- they stood if they come back within ten minutes. A later life of the server stays. A report of a life that ended
-- here may still be on its way: it is known for an hour, so that it brings no capacity back.
--
-- KEYS @waitingroom
--   world servers people inside ended
-- ARGV
--   server  string  server id
--   life    string  the life that ended
--   count   int     bound: people let out in one call
-- REPLY
--   DROPPED remaining:int   how many people are still to be let out
-- FLAGS idempotent

-- @include server_row
-- @include server_keep
-- @include life_end

local id, life = args.server, args.life

life_end(keys, id, life, args.count)
local remaining = redis.call('SCARD', keys.inside .. id .. ':' .. life)
local was = server_row(keys, id)
if was and was.life == life then
  redis.call('SADD', keys.ended .. id, '<' .. life)
  -- An empty row stays until everybody is let out: it tells the readers of the ledger that there is work left.
  server_keep(keys, id, was, remaining > 0 and
    { life = life, capacity = 0, reported = 0, counted = 0, consumed = 0, number = was.number, doubt = 0, url = '-' } or nil)
end
return { 'DROPPED', remaining }
