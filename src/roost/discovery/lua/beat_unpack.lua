-- What `beat_pack` packed; nil where there is no beat. Numbers stay strings of digits.
local function beat_unpack(packed)
  local silent, unhealthy, status, load, told_load, beat_ms, life, performance =
    string.match(packed or '', '^%[(%l+),(%l+),"(%l+)",(%d+),(%d+),(%d+),(%d+),(.+)%]$')
  return silent and { silent = silent == 'true', unhealthy = unhealthy == 'true', status = status, load = load,
    told_load = told_load, beat_ms = beat_ms, life = life, performance = performance }
end
