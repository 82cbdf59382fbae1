-- Put newcomers in place, all that is theirs in few calls, and tell of each in its turn. See `newcomer_of`.
--
-- What a newcomer has in `index` is written at last and alone: who finds its nonce there knows that nothing before it
-- failed.
-- @include int
-- @include beat_pack
-- @include entry_pack
-- @include instance_note
-- @include instance_tell
local function newcomers_put(keys, now, clock, newcomers)
  if #newcomers == 0 then
    return
  end
  local beat_ms, places, leases, names, ids = int(math.floor(now / 1000)), {}, {}, {}, {}
  for at, new in ipairs(newcomers) do
    new.beat = beat_pack({ status = new.status, load = new.load, told_load = new.load, beat_ms = beat_ms, life = new.life,
      performance = new.performance })
    local place = places[new.service] or { records = {}, beats = {} }
    places[new.service] = place
    local last = #place.records
    place.records[last + 1], place.records[last + 2] = new.id, new.record
    place.beats[last + 1], place.beats[last + 2] = new.id, new.beat
    leases[2 * at - 1], leases[2 * at], ids[at] = clock + new.ttl_ms / 2, new.id, new.id
    if new.name ~= '' then
      names[#names + 1], names[#names + 2] = new.name, new.id
    end
  end
  redis.call('HSET', keys.meta, 'life', newcomers[#newcomers].life)
  redis.call('ZADD', keys.leases, unpack(leases))
  for service, place in pairs(places) do
    redis.call('HSET', keys.records .. service, unpack(place.records))
    redis.call('HSET', keys.beats .. service, unpack(place.beats))
    redis.call('SADD', keys.services, service)
    place.panic = redis.call('SISMEMBER', keys.panics, service) == 1
  end
  if #names > 0 then
    redis.call('HSET', keys.names, unpack(names))
  end
  local were_gone = redis.call('HDEL', keys.gone, unpack(ids)) > 0
  local override = redis.call('EXISTS', keys.overrides) == 0 and '' or nil
  for _, new in ipairs(newcomers) do
    if were_gone then
      redis.call('PERSIST', keys.history .. new.id)
    end
    instance_note(keys, now, new.id, new, 'added', new.status)
    instance_tell(keys, now, new.id, new, 'added', new.status, new.record, new.beat, places[new.service].panic, override)
    redis.call('HSET', keys.index, new.id, entry_pack(new))
  end
end
