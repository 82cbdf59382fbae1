-- The former lives of a server that reports are over: of those whom each had let in at most 100 are let out. Bound: a
-- hundred lives are known.
-- @include life_end
local function lives_end(keys, now, id)
  for _, former in ipairs(redis.call('ZRANGE', keys.ended .. id, 0, -1)) do
    if redis.call('EXISTS', keys.inside .. id .. ':' .. former) == 1 then
      life_end(keys, now, id, former, 100)
    end
  end
end
