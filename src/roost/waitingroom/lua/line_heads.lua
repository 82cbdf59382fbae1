-- The first people of a line who are there, in groups that enter together, up to `wanted` people; and 1 if the
-- scan should be repeated at once, because people who were put aside or parties that wait for a member hid the rest. Bound: `ctx.scan_limit` people.
--
-- A group is one person, or a whole party: its members stand at the same place. A party that is not ready is passed
-- over and stays; where such parties fill the scan, the next one goes on behind them (`heads` in the world).
-- @include put_aside_if_late
-- @include party_ready
local function line_heads(keys, ctx, line, wanted)
  local groups, taken, aside = {}, 0, 0
  if wanted <= 0 then
    return groups, 0
  end
  local from = tonumber(redis.call('HGET', keys.world, 'heads' .. line) or '0')
  local scanned = redis.call('ZRANGE', keys.waiting .. line, from, from + ctx.scan_limit - 1, 'WITHSCORES')
  local party = {}
  for at = 1, #scanned, 2 do
    local user, seq = scanned[at], scanned[at + 1]
    local person = redis.call('HMGET', keys.people .. user, 'due', 'size', 'at')
    if put_aside_if_late(keys, ctx, line, user, seq, person[1]) then
      aside = aside + 1
    else
      local size, ready = tonumber(person[2] or '1'), { { user } }
      if size > 1 then
        party = party.seq == seq and party or { seq = seq }
        party[#party + 1] = user
        ready = party_ready(keys, ctx, party, size, tonumber(person[3] or '0'), scanned[at + 3] ~= seq)
        party = #ready == 0 and party or {}
      end
      for _, group in ipairs(ready) do
        groups[#groups + 1] = group
        taken = taken + #group
      end
      if taken >= wanted then
        redis.call('HDEL', keys.world, 'heads' .. line)
        return groups, 0
      end
    end
  end
  if #scanned < ctx.scan_limit * 2 then
    redis.call('HDEL', keys.world, 'heads' .. line)
    return groups, 0
  end
  -- The scans overlap by a party, which has at most 8 members.
  local overlap = math.min(7, math.floor(ctx.scan_limit / 2))
  redis.call('HSET', keys.world, 'heads' .. line, math.max(from, from + ctx.scan_limit - aside - taken - overlap))
  return groups, 1
end
