#!lua flags=no-writes
-- The servers of a type as this partition has them, in the order in which they are chosen.
--
-- KEYS @binding
--   partition servers binders ranking seen
-- ARGV
--   type  string  service type
-- REPLY
--   BOARD numbers:[string] bindings:int servers:[string]   names and numbers of the partition; users that somebody holds; server id, row and users, in turn
-- FLAGS idempotent bulk

-- @include server_row
-- @include row_pack
-- @include int

local servers = {}
for _, id in ipairs(redis.call('ZRANGE', keys.ranking .. args.type, 0, -1)) do
  local row = server_row(keys, args.type, id)
  if row then
    servers[#servers + 1] = id
    servers[#servers + 1] = row_pack(row)
    servers[#servers + 1] = int(redis.call('ZCARD', keys.binders .. args.type .. ':' .. id .. ':' .. row.life))
  end
end
return { 'BOARD', redis.call('HGETALL', keys.partition), redis.call('ZCARD', keys.seen .. args.type), servers }
