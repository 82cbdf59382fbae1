-- How many people wait in all the lines.
local function lines_length(keys, lines)
  local length = 0
  for _, line in ipairs(lines) do
    length = length + redis.call('ZCARD', keys.waiting .. line)
  end
  return length
end
