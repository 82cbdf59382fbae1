#!lua
-- Keep how far a forwarder has told one source; only the one that leads may.
--
-- KEYS @forward
--   leader marks
-- ARGV
--   holder  string  who leads
--   epoch   string  under which grant
--   source  string  whose feed it is
--   mark    string  `<rev>-<at>` of the last entry that was told
-- REPLY
--   KEPT     so it is kept
--   DEPOSED  another leads, or nobody: nothing was written
-- FLAGS idempotent

-- @include leads

if not leads(keys, args.holder, args.epoch) then
  return { 'DEPOSED' }
end
redis.call('HSET', keys.marks, args.source, args.mark)
return { 'KEPT' }
