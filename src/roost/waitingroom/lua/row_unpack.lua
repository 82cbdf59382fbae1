-- A server's row of the ledger, out of what `row_pack` wrote:
--
-- life      of the server in discovery, text
-- capacity  people it can take
-- reported  people on it as it last reported
-- counted   ordinal of the last consume that `reported` counts
-- consumed  ordinal of the last consume
-- number    of the last report, text
-- doubt     1: the store lost writes since, so nobody is admitted until it reports again
-- url       where players connect; a dash: the server was dropped and people on it remain to be seen to
--
-- Life and number stay texts: they are handed on as they came, and only compared as numbers.
local function row_unpack(packed)
  local life, capacity, reported, counted, consumed, number, doubt, url =
    string.match(packed, '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d)\t([^\t]*)$')
  return { life = life, capacity = tonumber(capacity), reported = tonumber(reported), counted = tonumber(counted),
    consumed = tonumber(consumed), number = number, doubt = tonumber(doubt), url = url }
end
