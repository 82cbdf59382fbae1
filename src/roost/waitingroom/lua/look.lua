#!lua flags=no-writes
-- What one person has in a world, for an operator who looks. Nothing changes by it: who is away stays away.
--
-- KEYS @waitingroom
--   world servers grace waiting away people
-- ARGV
--   user  string  whom to look at
-- REPLY
--   SEEN state:string line:string rank:int away_ahead:int nickname:string server:string left_ms:int cause:string   state is waiting, away, offered, inside, held, left or empty; rank 0: none; left_ms of a ticket or of a place that is held; cause: how they lost their place
-- FLAGS idempotent

-- @include person_server

local kept = redis.call('HMGET', keys.people .. args.user, 'state', 'seq', 'line', 'nick', 'exp', 'cause')
local state, seq, line = kept[1] or '', kept[2] or '0', kept[3] or ''
local clock = tonumber(redis.call('HGET', keys.world, 'clock_ms') or '0')
local rank, away_ahead, server, left_ms = 0, 0, '', 0
if state == 'waiting' or state == 'away' then
  rank = redis.call('ZCOUNT', keys.waiting .. line, '-inf', '(' .. seq) + 1
  away_ahead = redis.call('ZCOUNT', keys.away .. line, '-inf', '(' .. seq)
elseif state == 'offered' then
  left_ms = math.max(0, tonumber(kept[5]) - clock)
elseif state == 'inside' then
  server = person_server(keys, args.user) or ''
elseif state == 'grace' then
  state, left_ms = 'held', math.max(0, tonumber(redis.call('ZSCORE', keys.grace, args.user) or clock) - clock)
end
return { 'SEEN', state, line, rank, away_ahead, kept[4] or '', server, left_ms, kept[6] or '' }
