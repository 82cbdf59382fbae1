#!lua flags=no-writes
-- Give back what came in, in every reply type. Tests only.
--
-- KEYS
--   one      string  any key
--   rest...  string  more keys of its slot
-- ARGV
--   word     string  which answer is wanted
--   number   int     given back
--   blob     bytes   given back
--   more...  string  given back as lists
-- REPLY
--   ECHO number:int text:string blob:bytes numbers:[int] texts:[string] blobs:[bytes]   all of it
--   COUNTED keys:int args:int                                                           how many came
--   NOTHING                                                                             no fields
-- FLAGS idempotent

local one = KEYS[1]
local word, number, blob = ARGV[1], ARGV[2], ARGV[3]
local more = {}
for n = 4, #ARGV do
  more[#more + 1] = ARGV[n]
end

if word == 'echo' then
  local numbers = {}
  for n, text in ipairs(more) do
    numbers[n] = #text
  end
  return { 'ECHO', tonumber(number), word, blob, numbers, more, more }
end
if word == 'count' then
  return { 'COUNTED', #KEYS, #ARGV }
end
redis.call('EXISTS', one)
return { 'NOTHING' }
