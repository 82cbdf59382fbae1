-- Give a user whom nobody holds to the server that `choose` finds, above `seen`; returns id, row and epoch, or nil and why
-- there is none.
-- @include choose
-- @include epoch_above
-- @include grant
local function place(keys, ctx, record, version, seen, why)
  local id, row = choose(keys, ctx, record.kind, version)
  if not id then
    redis.call('HINCRBY', keys.partition, 'refused:' .. record.kind, 1)
    return nil, row
  end
  local epoch = epoch_above(record, seen, ctx.now)
  grant(keys, ctx, record, id, row.life, epoch, why)
  return id, row.life, epoch
end
