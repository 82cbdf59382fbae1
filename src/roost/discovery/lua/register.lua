#!lua
-- Register instances under new lives, each of them whole or not at all.
--
-- Many at once: all registrations that reach a gateway together are one call. They are taken in their order, as
-- if each had come alone, and each has an answer of its own. A life is larger than every life before it, also after
-- a failover that lost some.
--
-- A registration is given as eleven values: instance id; service (type:group); name (type:serverId, empty without a
-- server id); the record as JSON; what it says of itself: status, load, capacity, performance (a JSON object); ttl_ms, the
-- silence after which it is dead, in lease time; a nonce, different for each attempt to register; its former life, set when
-- it registers again by itself, else empty (its attempts are one, whatever their nonces). The answer, with tabs between, is REGISTERED and the life; TAKEN, the live
-- instance of the type that answers to this id, and for how many ms more; REMOVED and the cause (on purpose: it must not
-- come back by itself); or FENCED and the life (a later one of this id is registered).
--
-- KEYS @discovery
--   meta index leases names gone services overrides suspects panics feed bell records beats history
-- ARGV
--   now       int     test override of the server's clock in µs; empty outside tests
--   given...  string  eleven values for each registration; bound: 50 registrations
-- REPLY
--   ANSWERED answers:[string]   for each registration
-- FLAGS idempotent

-- @include now_us
-- @include int
-- @include newcomer_of
-- @include newcomers_put
-- @include instance_register

local given, now, answers = args.given, now_us(args.now), {}
local kept = redis.call('HMGET', keys.meta, 'clock_ms', 'life')
local clock, life = tonumber(kept[1] or '0'), tonumber(kept[2] or '0')
local newcomers = { seen = {} }
for at = 1, #given, 11 do
  local one = { id = given[at], service = given[at + 1], name = given[at + 2], record = given[at + 3],
    status = given[at + 4], load = given[at + 5], capacity = given[at + 6], performance = given[at + 7],
    ttl_ms = given[at + 8], nonce = given[at + 9], former_life = given[at + 10] }
  if newcomer_of(keys, newcomers, one) then
    life = math.max(now, life + 1)
    one.life = int(life)
    newcomers[#newcomers + 1] = one
    answers[#answers + 1] = 'REGISTERED\t' .. one.life
  else
    newcomers_put(keys, now, clock, newcomers)
    newcomers = { seen = {} }
    answers[#answers + 1], life = instance_register(keys, now, clock, life, one)
  end
end
newcomers_put(keys, now, clock, newcomers)
return { 'ANSWERED', answers }
