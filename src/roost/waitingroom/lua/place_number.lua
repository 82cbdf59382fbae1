-- The number of a new place: the next one, or the one that a receipt proves and the store has lost.
--
-- Of a world that was wiped, while this one is young; then nobody is admitted for a while, until others have shown
-- theirs. Of this world, if it is above all that the store knows of: so the store forgot the last writes, and for
-- as long every number above the last that it had kept is honoured.
local function place_number(world, clock, born, receipt_seq, receipt_born, rebuild_ms)
  if receipt_seq and receipt_born == born then
    local kept = redis.call('HMGET', world, 'seq', 'forgot', 'forgot_until')
    local last = tonumber(kept[1])
    local forgot = clock < tonumber(kept[3] or '0') and tonumber(kept[2]) or last
    if receipt_seq > last then
      redis.call('HSET', world, 'seq', string.format('%.0f', receipt_seq), 'forgot', string.format('%.0f', forgot),
        'forgot_until', string.format('%.0f', clock + rebuild_ms))
    end
    if receipt_seq > forgot then
      return string.format('%.0f', receipt_seq)
    end
  elseif receipt_seq and tonumber(receipt_born) < tonumber(born) and receipt_seq < tonumber(born) and clock < rebuild_ms then
    redis.call('HSETNX', world, 'rebuild_until', string.format('%.0f', clock + rebuild_ms / 4))
    return string.format('%.0f', receipt_seq)
  end
  return string.format('%.0f', redis.call('HINCRBY', world, 'seq', 1))
end
