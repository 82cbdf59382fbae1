#!lua
-- Append acknowledged messages to the journals of their users, each only if the user is still held under its epoch.
--
-- The entry of a sequence is `<sequence>-0`: what is there already is not written twice. `after` is the sequence that the
-- owner appended before it and has not flushed: a journal that ends sooner lost it in a failover, and the owner appends its
-- tail again first.
--
-- KEYS @binding
--   users journal
-- ARGV
--   type        string  service type
--   entries...  string  user id, epoch, sequence, after (0: none), payload, in turn; bound: 500 messages
-- REPLY
--   APPENDED answers:[string]   for each: ok, fenced or behind
-- FLAGS idempotent

-- @include journal_append

local answers = {}
for at = 1, #args.entries, 5 do
  local entry = args.entries
  answers[#answers + 1] = journal_append(keys, args.type .. ':' .. entry[at], entry[at + 1], entry[at + 2], entry[at + 3],
    entry[at + 4])
end
return { 'APPENDED', answers }
