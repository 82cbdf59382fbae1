#!lua
-- Renew an instance's lease, and take over what it says of itself. What is empty stays as it was.
--
-- A beat is an event only if the status changed, its silence ended, or the load moved by a twentieth of the
-- capacity since it was last told. A beat whose main loop has not turned for half the lease does not
-- renew: a hung server must not look alive. A beat ends silence, not what the checkers found.
--
-- KEYS @discovery
--   meta index leases gone overrides feed bell records beats history
-- ARGV
--   id           string   instance id
--   life         string   the life it has; empty where only the id is known
--   status       string   what the instance says of itself; empty: unchanged
--   load         string   users on it now; empty: unchanged
--   performance  bytes    JSON object; empty: unchanged
--   tick_age_ms  int      how long ago its main loop turned
--   now          int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   OK                    renewed
--   DRAIN                 renewed; the operator wants it empty
--   UNKNOWN               nobody knows it: register again
--   REMOVED cause:string  it was removed on purpose: do not come back
--   FENCED life:int       a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include instance_note
-- @include instance_tell
-- @include instance_suspect

local id, life, status, load, performance = args.id, args.life, args.status, args.load, args.performance
local tick_age_ms, now = args.tick_age_ms, now_us(args.now)

local entry = instance_entry(keys, id)
local was = entry and redis.call('HGET', keys.beats .. entry.place, id)
if not entry then
  local cause, ended = string.match(redis.call('HGET', keys.gone, id) or '', '^([^\t]+)\t(%d+)')
  if cause and cause ~= 'no-response' and (life == '' or tonumber(life) <= tonumber(ended)) then
    return { 'REMOVED', cause }
  end
  return { 'UNKNOWN' }
end
if life ~= '' and life ~= entry.life then
  if tonumber(life) < tonumber(entry.life) then
    return { 'FENCED', entry.life }
  end
  return { 'UNKNOWN' }
end
if not was then
  return { 'UNKNOWN' }
end

if tick_age_ms * 2 > entry.ttl_ms then
  local silent_now, is_news = instance_suspect(keys, id, entry)
  if silent_now then
    instance_note(keys, now, id, 'changed', entry.life, 'suspect')
  end
  if is_news then
    instance_tell(keys, now, id, entry, 'changed', 'suspect', redis.call('HGET', keys.records .. entry.place, id) or '', redis.call('HGET', keys.beats .. entry.place, id) or '')
  end
else
  local clock = tonumber(redis.call('HGET', keys.meta, 'clock_ms') or '0')
  local suspect, was_status, was_load, told =
    string.match(was, '^{"suspect":(%d),"status":"([^"]+)","load":(%d+),"told":(%d+)')
  local still = suspect - suspect % 2
  if still ~= tonumber(suspect) then
    redis.call('ZREM', keys.leases, id)
  end
  redis.call('ZADD', keys.leases, 'GT', clock + entry.ttl_ms / 2, id)
  status = status ~= '' and status or was_status
  load = load ~= '' and load or was_load
  performance = performance ~= '' and performance or string.match(was, '"performance":(.+)}$')
  local step = math.max(1, (entry.capacity > 0 and entry.capacity or tonumber(told)) / 20)
  local turned = suspect == '1' or status ~= was_status
  local seen = still > 0 and 'suspect' or status
  local news = turned or math.abs(load - told) >= step
  local beat = '{"suspect":' .. still .. ',"status":"' .. status .. '","load":' .. load .. ',"told":' .. (news and load or told)
    .. ',"beatMs":' .. string.format('%.0f', math.floor(now / 1000)) .. ',"life":' .. entry.life
    .. ',"performance":' .. performance .. '}'
  redis.call('HSET', keys.beats .. entry.place, id, beat)
  if turned then
    instance_note(keys, now, id, 'changed', entry.life, seen)
  end
  if news then
    instance_tell(keys, now, id, entry, 'changed', seen, redis.call('HGET', keys.records .. entry.place, id) or '', beat)
  end
end

local order = redis.call('HGET', keys.overrides, entry.name ~= '' and entry.name or id)
if order and string.find(order, '"drain":true', 1, true) then
  return { 'DRAIN' }
end
return { 'OK' }
