-- Whether `holder` leads the scope under `epoch` at this moment: both must be those of the present grant in the hash
-- `leader`. A store that forgot who leads takes orders from nobody. The fence of every script that only a leader may call.
local function leads(keys, holder, epoch)
  local kept = redis.call('HMGET', keys.leader, 'holder', 'epoch')
  return holder ~= '' and kept[1] == holder and kept[2] == epoch
end
