-- Tell the feed what happened to an instance, with all that a reader needs to know it.
-- The bell carries the words of the first design: event and server_id.
-- @include feed_append
local function instance_tell(keys, now, id, entry, event, status, record, beat)
  local server_id = string.match(entry.name, ':(.+)$') or id
  feed_append(keys, cjson.encode({ event = event, server_id = server_id }), now, 10000, {
    'event', event, 'id', id, 'place', entry.place, 'life', entry.life, 'serverId', server_id, 'status', status,
    'record', record, 'beat', beat,
    'order', redis.call('HGET', keys.overrides, entry.name ~= '' and entry.name or id) or '' })
end
