-- A whole number in digits: `..` and table.concat would write 1.76e+15 from the fifteenth digit on. Exact below 2^53;
-- what is behind the point is cut off. (%.0f would write the same, five times as slowly.)
local function int(number)
  return string.format('%d', number)
end
