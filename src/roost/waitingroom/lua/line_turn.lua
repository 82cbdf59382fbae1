-- The line whose turn it is, or nil where nobody is ready: one of weight 0 before all others, else smooth weighted turns,
-- in which every line with somebody ready earns its weight and the richest pays for all. A group that is larger than
-- the `room` left is not ready.
local function line_turn(lines, room)
  for _, line in ipairs(lines) do
    if line.weight == 0 and line.heads[line.at] and #line.heads[line.at] <= room then
      return line
    end
  end
  local turn, earned = nil, 0
  for _, line in ipairs(lines) do
    if line.heads[line.at] and #line.heads[line.at] <= room then
      line.credit = line.credit + line.weight
      earned = earned + line.weight
      if not turn or line.credit > turn.credit then
        turn = line
      end
    end
  end
  if turn then
    turn.credit = turn.credit - earned
  end
  return turn
end
