-- The number of a new place: the next one, or the one that a receipt proves and the store has lost.
--
-- Numbers grow strictly, and follow the store's clock in µs where they can: so one that was issued after the last write
-- that survived a failover is not issued again. The caller passes a receipt only for somebody whom the store does not
-- know. Whoever leaves is known for ten minutes, so a young receipt of a stranger proves that the store forgot them. Of a
-- world that was wiped receipts count while this one is young; then nobody is admitted for a while, until others
-- have shown theirs.
local function place_number(keys, now, clock, born, receipt_seq, receipt_born, receipt_age, rebuild_ms)
  local last = tonumber(redis.call('HGET', keys.world, 'seq'))
  if receipt_seq and receipt_born == born and receipt_age < rebuild_ms then
    redis.call('HSET', keys.world, 'seq', string.format('%.0f', math.max(last, receipt_seq)))
    return string.format('%.0f', receipt_seq)
  end
  if receipt_seq and tonumber(receipt_born) < tonumber(born) and receipt_seq < tonumber(born) and clock < rebuild_ms then
    redis.call('HSETNX', keys.world, 'rebuild_until', string.format('%.0f', clock + rebuild_ms / 4))
    return string.format('%.0f', receipt_seq)
  end
  local seq = string.format('%.0f', math.max(last + 1, now))
  redis.call('HSET', keys.world, 'seq', seq)
  return seq
end
