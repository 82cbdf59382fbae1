-- The live instance other than `id` that answers to `name` (type:serverId), and for how many ms of lease time more if it
-- stays silent; nil if the name is free. One without a server id answers to its own id: everybody who speaks of servers
-- would take the two for one.
-- @include instance_entry
local function name_holder(keys, name, id, clock)
  local holder = redis.call('HGET', keys.names, name)
  local entry = holder and holder ~= id and instance_entry(keys, holder)
  if not entry then
    local kind, bare = string.match(name, '^([^:]*):(.*)$')
    holder = bare
    entry = bare ~= id and instance_entry(keys, bare)
    if not entry or entry.name ~= '' or string.match(entry.service, '^[^:]*') ~= kind then
      return nil
    end
  end
  -- @include beat_unpack
  local due = tonumber(redis.call('ZSCORE', keys.leases, holder) or clock)
  local beat = beat_unpack(redis.call('HGET', keys.beats .. entry.service, holder))
  local ends = beat and beat.silent and due or due + entry.ttl_ms / 2
  return holder, math.max(0, math.ceil(ends - clock))
end
