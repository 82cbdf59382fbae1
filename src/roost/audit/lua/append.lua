#!lua
-- Keep what an operator did, as an entry of the feed: who looks at it now, hears of it.
--
-- KEYS @audit
--   feed bell
-- ARGV
--   keep       int     entries that stay; the oldest go first
--   age_ms     int     how long ago it was done: a store that was away hears of it late
--   now        int     test override of the server's clock in µs; empty outside tests
--   fields...  string  names and values by turns; at most 24
-- REPLY
--   APPENDED rev:int   its number

-- @include now_us
-- @include int
-- @include feed_append

local now = now_us(args.now)
local fields = { 'when', int(now - args.age_ms * 1000) }
for _, part in ipairs(args.fields) do
  fields[#fields + 1] = part
end
local rev = feed_append(keys, 'audit', now, args.keep, fields)
return { 'APPENDED', int(rev) }
