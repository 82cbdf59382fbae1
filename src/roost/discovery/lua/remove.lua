#!lua
-- Take an instance out: its own clean stop (`terminated`), an operator's act (`removed`), or a death that was seen
-- (`no-response`).
--
-- The tombstone keeps a late beat of this life from reviving it. Where the index cannot be read, its record is looked
-- for in every service.
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
-- ARGV
--   id         string   instance id
--   life       string   the life that is meant, or the one that registered again as it; empty: whichever it has
--   service      string   type:group where it is expected; empty: anywhere
--   cause      string   terminated, removed or no-response
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEFT             it is out, now or already
--   UNKNOWN          nobody knows it there
--   FENCED life:int  a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include tombstone_unpack
-- @include instance_end
-- @include instance_ghost
-- @include nonce_after

local id, life, service, now = args.id, args.life, args.service, now_us(args.now)

local entry = instance_entry(keys, id)
if not entry and redis.call('HEXISTS', keys.index, id) == 1 then
  for _, place in ipairs(redis.call('SMEMBERS', keys.services)) do
    local record = redis.call('HGET', keys.records .. place, id)
    entry = record and instance_ghost(keys, place, id, record) or entry
  end
end
if not entry then
  local tombstone = tombstone_unpack(redis.call('HGET', keys.gone, id))
  if tombstone and (tombstone.cause ~= 'no-response' or args.cause == 'no-response') then
    return { 'LEFT' }
  end
  return { 'UNKNOWN' }
end
if life ~= '' and tonumber(life) < tonumber(entry.life) and entry.nonce ~= nonce_after(life) then
  return { 'FENCED', entry.life }
end
if service ~= '' and service ~= entry.service then
  return { 'UNKNOWN' }
end
instance_end(keys, now, id, entry, args.cause)
return { 'LEFT' }
