-- Somebody takes a place, see `person_new`: OFFERED and its fields with the ticket `at_once` if one is given and there is
-- room, else WAITING and its fields. How long they will wait by what is known now is kept, to learn how wrong it was.
-- @include world_room
-- @include line_speed
-- @include person_new
-- @include person_offer
-- @include person_place
local function person_enters(keys, ctx, user, given, at_once, tat)
  person_new(keys, ctx, user, given)
  redis.call('HINCRBY', keys.world, 'entries', 1)
  if at_once and world_room(keys, ctx) > 0 then
    return person_offer(keys, ctx, user, at_once)
  end
  redis.call('ZADD', keys.waiting .. given.line, given.seq, user)
  local place = person_place(keys, ctx, user, { state = 'waiting', seq = given.seq, line = given.line }, tat)
  local rank, fast = place[3], line_speed(keys, ctx, given.line).fast
  if fast > 0 and ctx.now >= ctx.opens_at then
    redis.call('HSET', keys.people .. user, 'eta', math.floor(rank * 1000000 / fast))
  end
  return place
end
