-- A beat as the hash `beats` and the feed hold it; `beat_unpack` and `discovery/model.py` read it.
--
-- A JSON list of: whether it is silent, whether the checkers' votes made it unhealthy, status, load, the load that was
-- told last, time of the beat in ms, life, performance. Numbers are strings of digits here, and performance stays the
-- bytes that came: never cjson, which makes `[]` of `{}` and 1.76e+15 of a life.
local function beat_pack(beat)
  return '[' .. (beat.silent and 'true' or 'false') .. ',' .. (beat.unhealthy and 'true' or 'false') .. ',"' .. beat.status
    .. '",' .. beat.load .. ',' .. beat.told_load .. ',' .. beat.beat_ms .. ',' .. beat.life .. ',' .. beat.performance .. ']'
end
