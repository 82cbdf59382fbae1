-- Append one message to the journal of `who` (type and user): ok, fenced (another grant was made), or behind (what was
-- appended before it is not there). A sequence that is there, or was trimmed, is ok.
-- @include journal_last
local function journal_append(keys, who, epoch, sequence, after, payload)
  local kept = redis.call('HMGET', keys.users .. who, 'e', 'st')
  if kept[1] ~= epoch or kept[2] == 'R' then
    return 'fenced'
  end
  local last = journal_last(keys, who)
  if last >= tonumber(sequence) then
    return 'ok'
  end
  if last < tonumber(after) then
    return 'behind'
  end
  redis.call('XADD', keys.journal .. who, sequence .. '-0', 'e', epoch, 'p', payload)
  redis.call('PERSIST', keys.journal .. who)
  return 'ok'
end
