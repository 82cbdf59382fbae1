-- Tell the feed what happened to an instance, with record, beat, override and the panic of its service as they are now;
-- a removal has none of them. A caller that has record or beat at hand gives it. The bell carries the words of the first
-- design: event and server_id.
-- @include feed_append
-- @include instance_override
local function instance_tell(keys, now, id, entry, event, status, record, beat)
  local server_id = string.match(entry.name, ':(.+)$') or id
  if event == 'removed' then
    record, beat = '', ''
  end
  local panic = event ~= 'removed' and redis.call('SISMEMBER', keys.panics, entry.service) == 1
  record = record or redis.call('HGET', keys.records .. entry.service, id) or ''
  beat = beat or redis.call('HGET', keys.beats .. entry.service, id) or ''
  feed_append(keys, cjson.encode({ event = event, server_id = server_id }), now, 10000, {
    'event', event, 'id', id, 'service', entry.service, 'life', entry.life, 'serverId', server_id, 'status', status,
    'record', record, 'beat', beat, 'override', instance_override(keys, id, entry), 'panic', panic and '1' or '0' })
end
