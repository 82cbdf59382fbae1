#!lua flags=no-writes
-- Which of these commands the user of this connection may not give. None of them is given.
-- Each must have all of its words: a store may crash at one with too few.
--
-- ARGV
--   commands  string  JSON: a list of commands, each a list of words
-- REPLY
--   REFUSED places:[int]   their places in the list, from 1; a command that the store does not know is refused
-- FLAGS idempotent

local refused = {}
for at, command in ipairs(cjson.decode(args.commands)) do
  local known, may = pcall(redis.acl_check_cmd, unpack(command))
  if not known or may ~= true then
    refused[#refused + 1] = at
  end
end
return { 'REFUSED', refused }
