-- Look at a few votes at random and drop those about who has ended or lives another life: every voter may have left.
-- @include instance_entry
local function votes_tidy(keys)
  local some = redis.call('HRANDFIELD', keys.votes, 4, 'WITHVALUES')
  for at = 1, #some, 2 do -- bound: four
    local entry = instance_entry(keys, some[at])
    if not entry or entry.life ~= string.match(some[at + 1], '^%d+') then
      redis.call('HDEL', keys.votes, some[at])
    end
  end
end
