-- Register one instance, all of it or nothing, under a life that is larger than `life`, the largest so far. Returns the
-- answer as `register` replies it, and the largest life now.
--
-- A repeated call (the same nonce) gives the same life. An instance that registers itself again after it was forgotten
-- names its former life: it is refused if it was removed on purpose, or if a later life took its id; tried again, because
-- the answer was lost, it gives the same life. Where it comes back
-- as something else, its end is told first: a watcher of its old service or labels only sees it leave. Else only `added`
-- is told: to a reader who knows the id under another life, it is also that life's end.
-- @include int
-- @include beat_pack
-- @include entry_pack
-- @include instance_entry
-- @include instance_put
-- @include instance_note
-- @include instance_tell
-- @include name_holder
-- @include nonce_after
local function instance_register(keys, now, clock, life, given)
  local id, service, name, former_life = given.id, given.service, given.name, given.former_life
  local known, nonce = instance_entry(keys, id), given.nonce
  if former_life ~= '' then
    nonce = nonce_after(former_life)
  end
  if known and known.nonce == nonce then
    return 'REGISTERED\t' .. known.life, life
  end
  if former_life ~= '' then
    if known and tonumber(known.life) > tonumber(former_life) then
      return 'FENCED\t' .. known.life, life
    end
    -- @include removal_cause
    local cause = removal_cause(keys, id, former_life)
    if cause then
      return 'REMOVED\t' .. cause, life
    end
  end
  local known_as = name ~= '' and name or string.match(service, '^[^:]*') .. ':' .. id
  local holder, remaining_ms = name_holder(keys, known_as, id, clock)
  if holder then
    return 'TAKEN\t' .. holder .. '\t' .. int(remaining_ms), life
  end

  if known then
    local same = known.service == service and redis.call('HGET', keys.records .. service, id) == given.record
    -- @include instance_unlist
    instance_unlist(keys, id, known)
    if not same then
      instance_tell(keys, now, id, known, 'removed', 'terminated')
    end
    if known.service ~= service then
      -- @include panic_update
      panic_update(keys, now, known.service, id, false)
    end
  end

  life = math.max(now, life + 1)
  local entry = { service = service, life = int(life), nonce = nonce, name = name, ttl_ms = given.ttl_ms,
    capacity = given.capacity }
  local beat = beat_pack({ status = given.status, load = given.load, told_load = given.load,
    beat_ms = int(math.floor(now / 1000)), life = entry.life, performance = given.performance })
  redis.call('HSET', keys.meta, 'life', entry.life)
  if former_life ~= '' then
    -- @include override_follow
    override_follow(keys, id, name, former_life, entry.life)
  end
  instance_put(keys, id, entry, given.record, beat, clock + given.ttl_ms / 2)
  instance_note(keys, now, id, entry, 'added', given.status)
  instance_tell(keys, now, id, entry, 'added', given.status, given.record, beat)
  if redis.call('EXISTS', keys.suspects .. service) == 1 then
    -- @include panic_update
    panic_update(keys, now, service, id, false)
  end
  -- Last: who finds this nonce there knows that nothing before it failed.
  redis.call('HSET', keys.index, id, entry_pack(entry))
  return 'REGISTERED\t' .. entry.life, life
end
