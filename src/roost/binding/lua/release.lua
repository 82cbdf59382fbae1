#!lua
-- The owner gives a user up, or an operator takes them away: nobody holds them, the seat is free, the epoch stays.
--
-- Only under the epoch of the grant: a late release of an old session takes nothing from the new one. Whoever is on the move
-- is not released; by an operator they are once the time of their mark is over, which nobody may be there to resolve.
--
-- KEYS @binding
--   partition users servers binders ranking seen feed bell
-- ARGV
--   type    string  service type
--   user    string  user id
--   server  string  server id of the owner
--   life    string  of the owner
--   epoch   int     under which it holds the user
--   why     string  released, unbound or idle
--   now     int     test override of the server's clock in µs; empty outside tests
-- REPLY
--   RELEASED                     nobody holds the user
--   NOT_OWNER fields:[string]    it was not so; the record as it is
-- FLAGS idempotent

-- @include now_us
-- @include record_read
-- @include record_list
-- @include grant

local record = record_read(keys, args.type, args.user)
if record.st == 'R' and record.e == args.epoch then
  return { 'RELEASED' }
end
local clock = tonumber(redis.call('HGET', keys.partition, 'clock_ms') or '0')
local is_held = record.st == 'A' or (record.st == 'M' and args.why == 'unbound' and record.dt <= clock)
if not is_held or record.s ~= args.server or record.l ~= args.life or record.e ~= args.epoch then
  return { 'NOT_OWNER', record_list(record) }
end
grant(keys, { now = now_us(args.now), clock = clock }, record, '', '', record.e, args.why)
return { 'RELEASED' }
