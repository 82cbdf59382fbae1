#!lua
-- Say where orders are, each for a time. Ids are text: they are larger than the numbers of Lua.
--
-- KEYS @lanes
--   index
-- ARGV
--   ttl_s      int     how long it is kept
--   orders...  string  order id and `<shard>:<lane>:<symbol>`, in turn; bound: 500 orders
-- REPLY
--   INDEXED count:int   so many
-- FLAGS idempotent

for at = 1, #args.orders, 2 do
  redis.call('SET', keys.index .. args.orders[at], args.orders[at + 1], 'EX', args.ttl_s)
end
return { 'INDEXED', #args.orders / 2 }
