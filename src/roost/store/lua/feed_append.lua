-- Append a change to the stream `feed` and ring the shard channel `bell` with `message`; returns rev and at.
--
-- The entry id is `<rev>-0`, so revisions are dense and a hole is provable. `at` grows strictly and
-- `prevAt` repeats the `at` of the entry before: two histories that forked share revisions, not times.
-- `fields` is a flat list of names and values; about `keep` entries are kept. The newest rev and at are looked up once in
-- a call and then remembered in keys[0], where no key is: to read an entry costs more than to write one. The bell rings once
-- in a call for each run of the same message: who hears it finds all of them.
-- @include int
local function feed_append(keys, message, now, keep, fields)
  local newest = keys[0]
  if not newest then
    local last = redis.call('XREVRANGE', keys.feed, '+', '-', 'COUNT', 1)[1]
    newest = last and { rev = tonumber(string.match(last[1], '^%d+')), at = tonumber(last[2][2]) } or { rev = 0, at = 0 }
    keys[0] = newest
  end
  local rev, prev_at = newest.rev + 1, newest.at
  local at = math.max(now, prev_at + 1)
  redis.call('XADD', keys.feed, 'MAXLEN', '~', keep, int(rev) .. '-0',
    'at', int(at), 'prevAt', int(prev_at), unpack(fields))
  if newest.rung ~= message then
    redis.call('SPUBLISH', keys.bell, message)
  end
  newest.rev, newest.at, newest.rung = rev, at, message
  return rev, at
end
