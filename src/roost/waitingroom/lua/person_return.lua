-- A ticket has ended unused: its holder stands where they stood, which is at the front.
--
-- Who was not there meanwhile is away, but not gone: that is counted from the end of the ticket, in the field `back`.
-- Unless the hand-off failed through no fault of theirs it counts as a no-show (`spared`: a server refused them; `stuck`: at
-- some tick since, no server that takes users had room, or no gateway was there); where `ctx.forfeit` is above 0, so many
-- of them cost the place.
-- @include person_left
local function person_return(keys, ctx, user)
  local person = keys.people .. user
  local kept = redis.call('HMGET', person, 'tid', 'seq', 'line', 'spared', 'exp', 'stuck')
  redis.call('ZREM', keys.offers, user)
  redis.call('HINCRBY', keys.world, 'expired', 1)
  if kept[1] then
    redis.call('DEL', keys.granted .. kept[1])
  end
  if not kept[2] then
    return
  end
  redis.call('HDEL', person, 'tid', 'exp', 'spared', 'stuck')
  local missed = 0
  if not kept[4] and kept[6] == (redis.call('HGET', keys.world, 'stuck') or '0') then
    redis.call('HINCRBY', keys.world, 'no_shows', 1)
    missed = redis.call('HINCRBY', person, 'missed', 1)
  end
  if ctx.forfeit > 0 and missed >= ctx.forfeit then
    person_left(keys, user, 'no-show')
  else
    redis.call('HSET', person, 'state', 'waiting', 'back', kept[5])
    redis.call('ZADD', keys.waiting .. (kept[3] or ''), kept[2], user)
  end
end
