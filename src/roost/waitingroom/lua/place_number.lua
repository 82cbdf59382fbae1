-- The number of a new place: the next one, or the one that a receipt proves and the store has lost.
--
-- Numbers grow strictly, and follow the store's clock in µs where they can: so one that was issued after the last write
-- that survived a failover is not issued again. The caller passes a receipt (seq, born, age_ms, rebuild_ms) only for
-- somebody whom the store does not know. Who leaves is known for ten minutes, so a young receipt of somebody unknown to
-- the store proves that it forgot them. Of a world that was wiped receipts count while this one is young (`rebuild_ms`);
-- then nobody is admitted for a while, until others have shown theirs.
-- @include int
local function place_number(keys, ctx, receipt)
  local last, born = tonumber(redis.call('HGET', keys.world, 'seq')), tonumber(ctx.born)
  if receipt and receipt.born == ctx.born and receipt.age_ms < receipt.rebuild_ms then
    redis.call('HSET', keys.world, 'seq', int(math.max(last, receipt.seq)))
    return int(receipt.seq)
  end
  if receipt and tonumber(receipt.born) < born and receipt.seq < born and ctx.clock < receipt.rebuild_ms then
    redis.call('HSETNX', keys.world, 'rebuild_until', int(ctx.clock + receipt.rebuild_ms / 4))
    return int(receipt.seq)
  end
  local seq = int(math.max(last + 1, ctx.now))
  redis.call('HSET', keys.world, 'seq', seq)
  return seq
end
