#!lua
-- End a claim: it was told, or it is given up, and then the next who asks may try.
--
-- KEYS @alerts
--   claims
-- ARGV
--   id      string  digest of the receiver and of the dedup key
--   holder  string  who has the claim
--   told    int     1: the receiver has it; 0: given up
-- REPLY
--   SETTLED    so it is kept
--   NOT_YOURS  another process has the claim by now
-- FLAGS idempotent

local key = keys.claims .. args.id

if redis.call('HGET', key, 'holder') ~= args.holder then
  return { 'NOT_YOURS' }
end
if args.told == 1 then
  redis.call('HSET', key, 'holder', '')
else
  redis.call('DEL', key)
end
return { 'SETTLED' }
