#!lua
-- A server has ended: its capacity, its people and its gap leave the ledger together.
--
-- Called until nobody remains: the people that it had let in are found out one part after the other, and stand where
-- they stood if they come back within ten minutes. A later life of the server stays. A report of a life that ended
-- here may still be on its way: it is known for an hour, so that it brings no capacity back.
--
-- KEYS @waitingroom
--   world servers people inside ended
-- ARGV
--   server  string  server id
--   life    string  the life that ended
--   cause   string  crash, or clean
--   count   int     bound: people seen to in one call
--   now     int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   DROPPED remaining:int   how many people are still to be seen to
-- FLAGS idempotent

-- @include now_us
-- @include server_record
-- @include server_keep
-- @include life_end

local id, life, cause, count = args.server, args.life, args.cause, args.count
local now = now_us(args.now)

life_end(keys, id, life, cause, count)
local remaining = redis.call('SCARD', keys.inside .. id .. ':' .. life)
local was = server_record(keys, id)
if was and was.life == life then
  redis.call('SADD', keys.ended .. id, '<' .. life)
  -- An empty row stays until everybody is seen to: whoever looks at the ledger then knows that there is work left.
  server_keep(keys, id, was, remaining > 0 and
    { life = life, cap = 0, n = 0, k = 0, c = 0, number = was.number, doubt = 0, url = '-' } or nil)
end
return { 'DROPPED', remaining }
