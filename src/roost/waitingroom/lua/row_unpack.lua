-- A server's row of the ledger, out of what `row_pack` wrote:
--
-- life      of the server in discovery, text
-- capacity  people it can take
-- reported  people on it as it last reported
-- counted   ordinal of the last consume that `reported` counts
-- consumed  ordinal of the last consume
-- number    of the last report, text
-- doubt     1: the store lost writes since, so nobody is admitted until it reports again
-- open      1: it takes new users, as the leader heard of discovery
-- url       where players connect
--
-- Life and number stay texts: they are handed on as they came. Lives are compared for equality only.
local function row_unpack(packed)
  local life, capacity, reported, counted, consumed, number, doubt, open, url =
    string.match(packed, '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d)\t(%d)\t([^\t]*)$')
  return { life = life, capacity = tonumber(capacity), reported = tonumber(reported), counted = tonumber(counted),
    consumed = tonumber(consumed), number = number, doubt = tonumber(doubt), open = tonumber(open), url = url }
end
