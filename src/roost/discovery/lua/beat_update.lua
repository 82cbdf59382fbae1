-- Take over into `beat` what a heartbeat says; what is empty stays. It ends silence, not what the checkers found.
--
-- Returns whether the instance turned (its status changed, or it is not suspect any more), and whether that is to be
-- told: it turned, or its load moved by a twentieth of the capacity, or to or from full, since it was last told.
-- @include int
local function beat_update(beat, entry, now, status, load, performance)
  local turned = beat.silent and not beat.unhealthy or status ~= '' and status ~= beat.status
  beat.silent = false
  beat.status = status ~= '' and status or beat.status
  beat.load = load ~= '' and load or beat.load
  beat.performance = performance ~= '' and performance or beat.performance
  beat.beat_ms = int(math.floor(now / 1000))
  local load_now, told_load, capacity = tonumber(beat.load), tonumber(beat.told_load), entry.capacity
  local step = math.max(1, (capacity > 0 and capacity or told_load) / 20)
  local filled = capacity > 0 and (load_now >= capacity) ~= (told_load >= capacity)
  local is_news = turned or filled or math.abs(load_now - told_load) >= step
  if is_news then
    beat.told_load = beat.load
  end
  return turned, is_news
end
