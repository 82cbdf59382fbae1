-- The up to three of the `live` checkers that judge the instance `id`: those with the highest scores, by rendezvous
-- hashing, so that one that joins or leaves moves its own share only. `assignment.py` computes the same.
local function assigned_checkers(live, id)
  if #live <= 3 then
    return live
  end
  local ranked, scores = {}, {}
  for at, checker in ipairs(live) do -- bound: the gateways and managers of a fleet
    -- 13 digits are 52 bits: a double holds them exactly.
    ranked[at], scores[checker] = checker, tonumber(string.sub(redis.sha1hex(checker .. '\t' .. id), 1, 13), 16)
  end
  table.sort(ranked, function(one, other) return scores[one] > scores[other] end)
  return { ranked[1], ranked[2], ranked[3] }
end
