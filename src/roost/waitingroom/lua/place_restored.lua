-- The number of a place that a `receipt` proves and the store has lost; nil if it proves none.
--
-- The caller passes a receipt (seq, born, age_ms, rebuild_ms, most_ms) only for somebody whom the store does not know. Who leaves is
-- known for ten minutes, and `age_ms` counts from when the store last confirmed the place: so a young receipt of somebody
-- unknown proves that the store forgot them. Of a world that was wiped receipts count while this one is young
-- (`rebuild_ms`), if it had confirmed the place within `most_ms` before this one's birth; then nobody is admitted
-- for a while, until others have shown theirs. Their numbers move 2^36 back, which keeps their order and puts all of
-- them, also those drawn ahead of the clock, before whoever comes new; once only: a number below the birth of its own
-- world was moved when that one was young.
-- @include int
local function place_restored(keys, ctx, receipt)
  if not receipt then
    return nil
  end
  local born = tonumber(ctx.born)
  if receipt.born == ctx.born then
    if receipt.age_ms >= receipt.rebuild_ms then
      return nil
    end
    local last = tonumber(redis.call('HGET', keys.world, 'seq'))
    redis.call('HSET', keys.world, 'seq', int(math.max(last, receipt.seq)))
    return int(receipt.seq)
  end
  -- The lease clock, where the server's own went back since the birth.
  local age_at_birth = receipt.age_ms - math.max(ctx.clock, (ctx.now - born) / 1000)
  if tonumber(receipt.born) < born and ctx.clock < receipt.rebuild_ms and age_at_birth <= receipt.most_ms then
    if redis.call('HSETNX', keys.world, 'rebuilds', 1) == 1 then
      local kept = tonumber(redis.call('HGET', keys.world, 'rebuild_until') or '0')
      redis.call('HSET', keys.world, 'rebuild_until', int(math.max(kept, ctx.clock + receipt.rebuild_ms / 4)))
    end
    -- The rule of `Receipt.names` in passes.py.
    return int(receipt.seq >= tonumber(receipt.born) and receipt.seq - 68719476736 or receipt.seq)
  end
  return nil
end
