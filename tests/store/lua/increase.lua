#!lua
-- Add one to a counter: done twice it counts twice. Tests only.
--
-- KEYS
--   counter  string  the number
-- REPLY
--   NOW value:int  after it was increased

return { 'NOW', redis.call('INCR', keys.counter) }
