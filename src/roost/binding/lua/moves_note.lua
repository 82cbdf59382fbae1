#!lua
-- Note what became of attempts to move users; of each user the last twenty are kept. A note that is the newest already is
-- not noted again.
--
-- KEYS @binding
--   moves
-- ARGV
--   type      string  service type
--   notes...  bytes   user id and note, in turn; at most 500 users
-- REPLY
--   NOTED count:int   how many were new
-- FLAGS idempotent

local noted = 0
for at = 1, #args.notes, 2 do
  local who, note = args.type .. ':' .. args.notes[at], args.notes[at + 1]
  if redis.call('LINDEX', keys.moves .. who, 0) ~= note then
    redis.call('LPUSH', keys.moves .. who, note)
    redis.call('LTRIM', keys.moves .. who, 0, 19)
    noted = noted + 1
  end
  redis.call('EXPIRE', keys.moves .. who, 604800)
end
return { 'NOTED', noted }
