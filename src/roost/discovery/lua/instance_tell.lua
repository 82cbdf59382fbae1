-- Tell the feed what happened to an instance, with record, beat, override and the panic of its service as they are now;
-- a removal has none of them. A caller that has record, beat, panic or override at hand gives it. The bell carries the
-- words of the first design: event and server_id.
-- @include feed_append
-- @include instance_override
local function instance_tell(keys, now, id, entry, event, status, record, beat, panic, override)
  local server_id = string.match(entry.name, ':(.+)$') or id
  if event == 'removed' then
    record, beat = '', ''
  end
  if panic == nil then
    panic = event ~= 'removed' and redis.call('SISMEMBER', keys.panics, entry.service) == 1
  end
  record = record or redis.call('HGET', keys.records .. entry.service, id) or ''
  beat = beat or redis.call('HGET', keys.beats .. entry.service, id) or ''
  local words = '{"event":"' .. event .. '","server_id":' .. cjson.encode(server_id) .. '}'
  feed_append(keys, words, now, 10000, {
    'event', event, 'id', id, 'service', entry.service, 'life', entry.life, 'serverId', server_id, 'status', status,
    'record', record, 'beat', beat, 'override', override or instance_override(keys, id, entry),
    'panic', panic and '1' or '0' })
end
