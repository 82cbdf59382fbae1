#!lua
-- End the records of a service that the index does not know: ghosts that would never end by themselves; and count the
-- suspects of the service anew.
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
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
-- @include instance_ghost
-- @include instance_end
-- @include panic_update

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
    instance_end(keys, now, id, instance_ghost(keys, service, id, part[2][at + 1]), 'no-response')
    mended = mended + 1
  end
end
for _, id in ipairs(redis.call('SMEMBERS', keys.suspects .. service)) do
  if redis.call('HEXISTS', keys.records .. service, id) == 0 then
    mended = mended + redis.call('SREM', keys.suspects .. service, id)
  end
end
if panic_update(keys, now, service, '', false) then
  mended = mended + 1
end
if redis.call('HLEN', keys.records .. service) == 0 then
  mended = mended + redis.call('SREM', keys.services, service)
end
return { 'REPAIRED', part[1], mended }
