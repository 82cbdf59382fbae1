-- An entry for an instance whose `record` is there without an entry of the index that could be read, so that it can be
-- ended. Only what a record begins with is looked at: it may be damaged too.
-- @include beat_unpack
local function instance_ghost(keys, service, id, record)
  local server_id = string.match(record, '^{"type":"[^"]*","group":"[^"]*","serverId":"([^"]+)"')
  local beat = beat_unpack(redis.call('HGET', keys.beats .. service, id))
  local name = server_id and string.match(service, '^[^:]+:') .. server_id or ''
  return { service = service, life = beat and beat.life or '0', name = name }
end
