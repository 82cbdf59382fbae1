#!lua
-- Forget the entries of a user's journal up to a sequence: the row of the database holds them. The last one stays, because
-- it says how far the journal went; a journal that holds nothing else is kept for a day.
--
-- KEYS @binding
--   journal
-- ARGV
--   type   string  service type
--   user   string  user id
--   up_to  int     the last sequence that the row holds
-- REPLY
--   TRIMMED count:int   how many were forgotten
-- FLAGS idempotent

-- @include int
-- @include journal_last

local who = args.type .. ':' .. args.user
local last = journal_last(keys, who)
local count = redis.call('XTRIM', keys.journal .. who, 'MINID', int(math.min(args.up_to + 1, last)) .. '-0')
if args.up_to >= last then
  redis.call('EXPIRE', keys.journal .. who, 86400)
end
return { 'TRIMMED', count }
