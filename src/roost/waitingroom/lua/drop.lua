#!lua
-- A server has ended: its capacity, its people and its gap leave the ledger together.
--
-- Called until nobody remains: the people that it had let in are found out one part after the other, and stand where
-- they stood if they come back within ten minutes. A later life of the server stays. A report of a life that ended
-- here may still be on its way: it is known for an hour, so that it brings no capacity back.
--
-- KEYS
--   world     hash     numbers, mode and lease clock of the world
--   servers   hash     server id → its row in the ledger
--   people*   hash     per user: state and what else is known
--   inside*   set      per server and life: users that it let in; per server: lives that have ended
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

local world, servers, people, inside = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, life, cause, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = now_us(ARGV[5])

life_end(people, inside, id, life, cause, count)
local remaining = redis.call('SCARD', inside .. id .. ':' .. life)
local was = server_record(servers, id)
if was and was.life == life then
  redis.call('SADD', inside .. id .. ':ended', '<' .. life)
  -- An empty row stays until everybody is seen to: whoever looks at the ledger then knows that there is work left.
  server_keep(world, servers, id, was, remaining > 0 and
    { life = life, cap = 0, n = 0, k = 0, c = 0, number = was.number, doubt = 0, url = '-' } or nil)
end
return { 'DROPPED', remaining }
