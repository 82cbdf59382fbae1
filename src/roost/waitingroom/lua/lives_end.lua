-- Every life of a server but the one that reports now is over, also if nobody saw its end: of those whom each had let
-- in at most 100 are let out.
-- @include life_end
local function lives_end(keys, id, life, was)
  local lives = redis.call('SMEMBERS', keys.ended .. id)
  if was and was.life ~= life then
    lives[#lives + 1] = was.life
  end
  for _, former in ipairs(lives) do
    if redis.call('EXISTS', keys.inside .. id .. ':' .. former) == 1 then
      life_end(keys, id, former, 100)
    end
  end
end
