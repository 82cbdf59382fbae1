-- The last sequence in the journal of `who` (type and user); 0: it has none.
local function journal_last(keys, who)
  local last = redis.call('XREVRANGE', keys.journal .. who, '+', '-', 'COUNT', 1)[1]
  return last and tonumber(string.match(last[1], '^%d+')) or 0
end
