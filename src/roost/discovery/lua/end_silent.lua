#!lua
-- End an instance whose death a probe has confirmed, unless it has beaten since.
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
-- ARGV
--   id         string   instance id
--   life       string   the life that was probed
--   now        int      test override of the server's clock in µs; empty outside tests
-- REPLY
--   ENDED    it is out, and its death was told
--   ALIVE    it is not silent any more, or another life, or already out
-- FLAGS idempotent

-- @include now_us
-- @include instance_entry
-- @include beat_unpack
-- @include instance_end

local id, now = args.id, now_us(args.now)

local entry = instance_entry(keys, id)
local beat = entry and beat_unpack(redis.call('HGET', keys.beats .. entry.service, id))
if not beat or entry.life ~= args.life or not beat.silent then
  return { 'ALIVE' }
end
instance_end(keys, now, id, entry, 'no-response')
return { 'ENDED' }
