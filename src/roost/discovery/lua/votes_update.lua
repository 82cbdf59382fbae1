-- Keep what a checker finds of an instance (`none`: nothing any more), and return what each finds, by checker. What was
-- said of another life, or by a checker that is not in the set `counts`, is dropped.
local function votes_update(keys, id, life, counts, checker, finding)
  local votes, lines = {}, {}
  local kept_life, kept = string.match(redis.call('HGET', keys.votes, id) or '', '^(%d+)(.*)$')
  if kept_life == life then
    for who, found in string.gmatch(kept, '\t([^\t=]+)=(%l+)') do -- bound: one for each checker
      votes[who] = counts[who] and found
    end
  end
  votes[checker] = counts[checker] and finding ~= 'none' and finding or nil
  for who, found in pairs(votes) do
    lines[#lines + 1] = '\t' .. who .. '=' .. found
  end
  if #lines > 0 then
    table.sort(lines)
    redis.call('HSET', keys.votes, id, life .. table.concat(lines))
  else
    redis.call('HDEL', keys.votes, id)
  end
  return votes
end
