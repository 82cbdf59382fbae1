-- The line whose turn it is, or nil where nobody is ready: one of weight 0 has absolute priority, else smooth weighted turns,
-- in which every line with somebody ready earns its weight and the richest pays for all. Where its group is larger
-- than the `room` left it is nobody's turn: the places are kept for it, and the turns stay as they are.
local function line_turn(lines, room)
  local turn, earned = nil, 0
  for _, line in ipairs(lines) do
    if line.heads[line.at] then
      earned = earned + line.weight
      if not turn or turn.weight > 0 and (line.weight == 0 or line.credit + line.weight > turn.credit + turn.weight) then
        turn = line
      end
    end
  end
  if not turn or #turn.heads[turn.at] > room then
    return nil
  end
  if turn.weight > 0 then
    for _, line in ipairs(lines) do
      line.credit = line.credit + (line.heads[line.at] and line.weight or 0)
    end
    turn.credit = turn.credit - earned
  end
  return turn
end
