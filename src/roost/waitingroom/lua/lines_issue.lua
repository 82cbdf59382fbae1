-- Issue tickets to the heads of the lines, in turn, while there is room: at most `wanted`, or for a party that is begun
-- `free`. Returns how many, user and ticket id of each in turn, and ticket id and trace of those who were sampled.
-- @include line_turn
-- @include person_offer
local function lines_issue(keys, ctx, lines, wanted, free, tids)
  local issued, tickets, traces = 0, {}, {}
  for _ = 1, wanted do
    local turn = issued < wanted and line_turn(lines, free - issued)
    if not turn then
      break
    end
    for _, user in ipairs(turn.heads[turn.at]) do
      issued = issued + 1
      turn.issued = turn.issued + 1
      redis.call('ZREM', keys.waiting .. turn.suffix, user)
      local _, trace = person_offer(keys, ctx, user, tids[issued])
      tickets[#tickets + 1] = user
      tickets[#tickets + 1] = tids[issued]
      if trace then
        traces[#traces + 1] = tids[issued]
        traces[#traces + 1] = trace
      end
    end
    turn.at = turn.at + 1
  end
  return issued, tickets, traces
end
