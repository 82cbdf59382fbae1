-- In how many ms somebody at `rank` of a line that moves at `fast` is to ask again: a tenth of the time that is left, 2
-- to 30 s; `poll_ms` in rules.py is the same rule.
local function poll_interval(rank, fast)
  if rank <= 100 then
    return 2000
  end
  return fast > 0 and math.min(30000, math.max(2000, math.floor(rank * 100000 / fast))) or 30000
end
