-- The epoch of the newest entry of the shard's log, in digits; '0' where there is none.
local function log_epoch(keys)
  local newest = redis.call('XREVRANGE', keys.log, '+', '-', 'COUNT', 1)[1]
  return newest and string.match(newest[1], '^%d+') or '0'
end
