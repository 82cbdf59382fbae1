-- The life that forbids `life` of a server to report, nil if none does: a later one that has reported (`was` is the
-- server's row), or one that has ended.
local function life_fence(keys, id, life, was)
  if was and tonumber(was.life) > tonumber(life) then
    return was.life
  end
  for _, former in ipairs(redis.call('SMEMBERS', keys.ended .. id)) do
    -- `<n` is a life that was in the ledger: whatever is older has ended too. Others may be of another type of server.
    local in_ledger = tonumber(string.match(former, '^<(%d+)$'))
    if former == life or (in_ledger and tonumber(life) <= in_ledger) then
      return in_ledger or life
    end
  end
  return nil
end
