-- Append a change to the stream `feed` and ring the shard channel `bell` with `message`; returns rev and at.
--
-- The entry id is `<rev>-0`, so revisions are dense and a hole is provable. `at` grows strictly and
-- `prevAt` repeats the `at` of the entry before: two histories that forked share revisions, not times.
-- `fields` is a flat list of names and values; about `keep` entries are kept.
-- @include int
local function feed_append(keys, message, now, keep, fields)
  local rev, prev_at = 0, 0
  local last = redis.call('XREVRANGE', keys.feed, '+', '-', 'COUNT', 1)[1]
  if last then
    rev = tonumber(string.match(last[1], '^%d+'))
    prev_at = tonumber(last[2][2])
  end
  rev = rev + 1
  local at = math.max(now, prev_at + 1)
  redis.call('XADD', keys.feed, 'MAXLEN', '~', keep, int(rev) .. '-0',
    'at', int(at), 'prevAt', int(prev_at), unpack(fields))
  redis.call('SPUBLISH', keys.bell, message)
  return rev, at
end
