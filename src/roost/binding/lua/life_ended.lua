-- Whether this very life of a server has ended. No life is compared by size: another primary's clock may be behind.
local function life_ended(keys, kind, id, life)
  return redis.call('ZSCORE', keys.buried .. kind .. ':' .. id, life) and true or false
end
