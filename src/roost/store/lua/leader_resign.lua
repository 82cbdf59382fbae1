#!lua
-- Give up the leadership of a scope, so that another may take it at once.
--
-- KEYS
--   leader  hash    who leads, under which epoch, until when
-- ARGV
--   holder  string  who resigns
--   epoch   string  the epoch it leads under
-- REPLY
--   RESIGNED     the leadership is free
--   NOT_LEADING  it was not `holder`'s under this epoch
-- FLAGS idempotent

-- @include lease_drop

local holder, epoch = args.holder, args.epoch

if lease_drop(keys.leader, holder, epoch) then
  return { 'RESIGNED' }
end
return { 'NOT_LEADING' }
