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

local rev, at = feed_append(keys, args.what, now_us(args.now), args.keep, { 'what', args.what })
return { 'WRITTEN', rev, at }
