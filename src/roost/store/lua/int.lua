-- A whole number in digits: `..` and table.concat would write 1.76e+15 from the fifteenth digit on.
local function int(number)
  return string.format('%.0f', number)
end
