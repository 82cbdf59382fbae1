-- The context that the functions of a script share, of a world that is born now if the store does not know it. Its
-- sequence starts at its birth in µs: a world that was wiped issues no number twice.
--
-- now       the server's clock, µs
-- clock     the lease clock, ms
-- born      when the store first knew the world, µs as text
-- opens_at  when it opens, µs; 0: it was never closed
-- mode      how an operator runs it
-- speeds    of the lines that were asked for, see `line_speed`
--
-- A script adds the limits and periods that it was called with (ticket_ms, late_ms …).
-- @include int
local function world_open(keys, now)
  local kept = redis.call('HMGET', keys.world, 'born', 'clock_ms', 'opens_at', 'mode')
  local born = kept[1]
  if not born then
    born = int(now)
    redis.call('HSET', keys.world, 'born', born, 'seq', born)
  end
  return { now = now, clock = tonumber(kept[2] or '0'), born = born, opens_at = tonumber(kept[3] or '0'),
    mode = kept[4] or 'auto', speeds = {} }
end
