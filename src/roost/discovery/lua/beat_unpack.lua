-- What `beat_pack` packed; nil where there is no beat. Numbers stay strings of digits. Performance is cut off, not
-- matched: a pattern would look at every byte of it.
local function beat_unpack(packed)
  local silent, unhealthy, status, load, told_load, beat_ms, life, at =
    string.match(packed or '', '^%[(%l)%l+,(%l)%l+,"(%l+)",(%d+),(%d+),(%d+),(%d+),()')
  return silent and { silent = silent == 't', unhealthy = unhealthy == 't', status = status, load = load,
    told_load = told_load, beat_ms = beat_ms, life = life, performance = string.sub(packed, at, -2) }
end
