-- What the ledger `servers` holds of a server: life, cap, n (people on it as it last reported), k (the last consume
-- that n counts), c (the last consume), number of the report, doubt, url; nil if it is not there.
-- Life and number stay texts: as numbers they would lose digits when they are written again.
-- The most people that may be on it are n + c - k: whoever left since the report only makes this too high.
local function server_record(keys, id)
  local packed = redis.call('HGET', keys.servers, id)
  if not packed then
    return nil
  end
  local life, cap, n, k, c, number, doubt, url =
    string.match(packed, '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d)\t([^\t]*)$')
  return { life = life, cap = tonumber(cap), n = tonumber(n), k = tonumber(k), c = tonumber(c),
    number = number, doubt = tonumber(doubt), url = url }
end
