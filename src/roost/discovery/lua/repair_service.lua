#!lua
-- End the records of a service that the index does not know: ghosts that would never end by themselves.
--
-- KEYS @discovery
--   index leases names gone services overrides feed bell records beats history
-- ARGV
--   service      string   type:group
--   cursor     string   where the last part ended; 0 at first
--   count      int      bound: about how many are looked at
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   REPAIRED cursor:string mended:int  where to go on, and how many did not fit
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include beat_unpack
-- @include instance_end

local service, now = args.service, now_us(args.now)

local mended = 0
local part = redis.call('HSCAN', keys.records .. service, args.cursor, 'COUNT', args.count)
for at = 1, #part[2], 2 do
  local id = part[2][at]
  local entry = instance_entry(keys, id)
  if entry and entry.service ~= service or not entry and redis.call('HEXISTS', keys.gone, id) == 1 then
    redis.call('HDEL', keys.records .. service, id)
    redis.call('HDEL', keys.beats .. service, id)
    mended = mended + 1
  elseif not entry then
    local server_id = cjson.decode(part[2][at + 1]).serverId or ''
    local name = server_id ~= '' and string.match(service, '^[^:]+:') .. server_id or ''
    local beat = beat_unpack(redis.call('HGET', keys.beats .. service, id))
    instance_end(keys, now, id, { service = service, life = beat and beat.life or '0', name = name }, 'no-response')
    mended = mended + 1
  end
end
if redis.call('HLEN', keys.records .. service) == 0 then
  mended = mended + redis.call('SREM', keys.services, service)
end
return { 'REPAIRED', part[1], mended }
