-- Where the instance `id` lives and under which life, read from the hash `index`; nil if nowhere, or if what the index
-- has for it cannot be read: then `repair` ends it.
-- @include entry_unpack
local function instance_entry(keys, id)
  return entry_unpack(redis.call('HGET', keys.index, id))
end
