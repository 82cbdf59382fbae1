#!lua
-- Append one change to a feed, as the scripts of the capabilities do. Tests only.
--
-- KEYS
--   feed  stream   the changes
--   bell  channel  rings for each
-- ARGV
--   what  string   the change
--   keep  int      about how many entries are kept
--   now   int      test override of the server's clock in µs
-- REPLY
--   WRITTEN rev:int at:int  it is the newest entry

-- @include now_us
-- @include feed_append

local feed, bell = KEYS[1], KEYS[2]
local what, keep = ARGV[1], tonumber(ARGV[2])
local now = now_us(ARGV[3])

local rev, at = feed_append(feed, bell, what, now, keep, { 'what', what })
return { 'WRITTEN', rev, at }
