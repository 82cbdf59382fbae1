-- Write down somebody who takes the place `given.seq`, instead of all that was known of them but how often they asked.
-- `given` holds also line, nickname, region, the size of their party and the trace; what is empty is not written.
-- @include int
local function person_new(keys, ctx, user, given)
  local person = keys.people .. user
  local fields = { tat = redis.call('HGET', person, 'tat') or '', line = given.line, region = given.region,
    nick = given.nickname ~= user and given.nickname or '', size = given.size > 1 and given.size or '',
    trace = given.trace }
  redis.call('DEL', person)
  redis.call('HSET', person, 'state', 'waiting', 'seq', given.seq, 'at', int(ctx.clock))
  for name, value in pairs(fields) do
    if value ~= '' then
      redis.call('HSET', person, name, value)
    end
  end
end
