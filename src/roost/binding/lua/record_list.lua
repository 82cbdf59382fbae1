-- A record as a reply tells it; `model.py` reads it, and the plain HMGET of these fields alike.
-- @include int
local function record_list(record)
  return { record.s, record.l, int(record.e), record.p, record.st, record.since, record.why }
end
