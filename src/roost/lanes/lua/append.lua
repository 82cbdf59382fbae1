#!lua
-- Append an entry to the log of each of some shards, right after the entry that its owner wrote last.
--
-- The stream itself takes only ids above its last one, so an owner of an earlier epoch is refused for ever. That nothing is
-- missing before the entry is what `tail` proves: a primary that lost acknowledged entries says which it has. Each shard has an
-- answer of its own. Shards that are not in one slot are appended to by calls of their own. Bound: 16 shards.
--
-- An entry is five values: the tail that the owner knows (`<epoch>-<seq>:<last seq>`), the tail after it, its id
-- `<epoch>-<seq of its first command>`, how many commands it has, and they. A word of the answer is `+`: it is in the log,
-- perhaps since an earlier call; `-<tail>`: the log ends elsewhere; `!<error>`: the stream refused it.
--
-- KEYS
--   logs...     stream  `log` and `tail` of each shard, in turn
-- ARGV
--   entries...  bytes   the entry of each shard, in turn
-- REPLY
--   ANSWERED words:[string]  one for each shard
-- FLAGS idempotent

local entries, words = args.entries, {}
for shard = 1, #keys.logs / 2 do
  local log, tail, at = 2 * shard - 1, 2 * shard, 5 * shard - 4
  local kept = redis.call('GET', keys.logs[tail]) or ''
  if kept == entries[at + 1] then
    redis.call('SET', keys.logs[tail], kept) -- a write of this connection, for whoever waits for the disk after it
    words[shard] = '+'
  elseif kept ~= entries[at] then
    words[shard] = '-' .. kept
  else
    local added = redis.pcall('XADD', keys.logs[log], entries[at + 2], 'n', entries[at + 3], 'b', entries[at + 4])
    if type(added) == 'table' then
      words[shard] = '!' .. added.err
    else
      redis.call('SET', keys.logs[tail], entries[at + 1])
      words[shard] = '+'
    end
  end
end
return { 'ANSWERED', words }
