-- A server's row, out of what `row_pack` wrote:
--
-- life      of the server in discovery, text; compared for equality only
-- open      1: it takes new users, 0: it does not, as the leader heard of discovery; ?: the leader has not named this life
-- capacity  users that it takes; 0: no limit
-- lease     lease time until which it is alive; 0: it has not beaten yet
-- first     lease time at which it first took new users, for the slow start
-- version   as it says itself
local function row_unpack(packed)
  local life, open, capacity, lease, first, version = string.match(packed, '^(%d+)\t([01?])\t(%d+)\t(%d+)\t(%d+)\t([^\t]*)$')
  return { life = life, open = open, capacity = tonumber(capacity), lease = tonumber(lease), first = tonumber(first),
    version = version }
end
