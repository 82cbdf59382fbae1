#!lua
-- Take an instance out: its own clean stop (`terminated`), or an operator's act (`removed`).
--
-- The tombstone keeps a late beat of this life from reviving it.
--
-- KEYS @discovery
--   index leases names gone services overrides feed bell records beats history
-- ARGV
--   id         string   instance id
--   life       string   the life that is meant; empty: whichever it has
--   service      string   type:group where it is expected; empty: anywhere
--   cause      string   terminated or removed
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   LEFT             it is out, now or already
--   UNKNOWN          nobody knows it there
--   FENCED life:int  a later life of this id is registered
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include removal_cause
-- @include instance_end

local id, life, service, now = args.id, args.life, args.service, now_us(args.now)

local entry = instance_entry(keys, id)
if not entry then
  if removal_cause(keys, id, '') then
    return { 'LEFT' }
  end
  return { 'UNKNOWN' }
end
if life ~= '' and tonumber(life) < tonumber(entry.life) then
  return { 'FENCED', entry.life }
end
if service ~= '' and service ~= entry.service then
  return { 'UNKNOWN' }
end
instance_end(keys, now, id, entry, args.cause)
return { 'LEFT' }
