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

local word, more = args.word, args.more
if word == 'echo' then
  local numbers = {}
  for n, text in ipairs(more) do
    numbers[n] = #text
  end
  return { 'ECHO', args.number, word, args.blob, numbers, more, more }
end
if word == 'count' then
  return { 'COUNTED', 1 + #keys.rest, 3 + #more }
end
redis.call('EXISTS', keys.one)
return { 'NOTHING' }
