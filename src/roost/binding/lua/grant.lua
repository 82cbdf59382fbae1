-- Give a user to a life of a server under `epoch`, or to nobody (server and life are empty: a tombstone that keeps the epoch
-- for a day). The one place where a user changes hands: the seats move (also one that a move had taken), a mark of a move
-- ends, and the feed tells it. A grant that repeats what the record says moves nothing.
-- @include int
-- @include seat
-- @include feed_append
local function grant(keys, ctx, record, server, life, epoch, why)
  local users, kind = keys.users .. record.kind .. ':' .. record.user, record.kind
  if record.s ~= '' and (record.s ~= server or record.l ~= life) then
    seat(keys, ctx, record, record.s, record.l, false)
  end
  if record.d ~= '' and (record.d ~= server or record.dl ~= life) then
    seat(keys, ctx, record, record.d, record.dl, false)
  end
  redis.call('HSET', users, 's', server, 'l', life, 'e', int(epoch), 'p', int(record.e), 'st', server == '' and 'R' or 'A',
    'since', int(ctx.now), 'why', why)
  if record.st == 'M' then
    redis.call('HDEL', users, 'd', 'dl', 'ne', 'm', 'dt')
  end
  if server == '' then
    redis.call('EXPIRE', users, 86400)
    redis.call('ZREM', keys.seen .. kind, record.user)
  else
    if record.st == 'R' then
      redis.call('PERSIST', users)
    end
    seat(keys, ctx, record, server, life, true)
    redis.call('ZADD', keys.seen .. kind, ctx.clock, record.user)
  end
  redis.call('HINCRBY', keys.partition, 'granted:' .. kind .. ':' .. why, 1)
  feed_append(keys, why, ctx.now, 20000, { 'event', server == '' and 'released' or 'bound', 'type', kind,
    'user', record.user, 'serverId', server, 'life', life, 'epoch', int(epoch), 'why', why, 'from', record.s,
    'fromLife', record.l })
end
