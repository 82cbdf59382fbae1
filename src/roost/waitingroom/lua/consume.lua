#!lua
-- Let the holder of a ticket into a game server: the one place where somebody gets inside.
--
-- The ticket, the seat it held and the server's count move in one step. A repeated call of the same connection gets
-- the same answer. A server that is full or not known refuses at the door: the ticket stays valid for another one,
-- and if it runs out that is no no-show.
--
-- KEYS @waitingroom
--   world servers offers people granted inside
-- ARGV
--   user    string  user id that the ticket names
--   tid     string  id of the ticket
--   server  string  server id
--   life    string  the life of the server in discovery
--   conn    string  which connection; the same on a retry
-- REPLY
--   ADMITTED number:int nickname:string region:string left_ms:int trace:string   is inside; ordinal of the consume on this server, what was left of the ticket, and the trace of who was sampled
--   USED                                                            the ticket was consumed before
--   EXPIRED                                                         the ticket has ended
--   UNKNOWN                                                         no such ticket
--   SERVER_FULL                                                     this server takes nobody more, or no new users
--   SERVER_UNKNOWN                                                  this life of the server is not known, or has not reported yet
-- FLAGS idempotent

-- @include server_row
-- @include server_keep
-- @include row_with
-- @include row_room

local user, tid, id, life, conn = args.user, args.tid, args.server, args.life, args.conn

local person = redis.call('HMGET', keys.people .. user, 'state', 'tid', 'exp', 'server', 'life', 'conn', 'number', 'nick', 'region', 'trace')
local nickname, region, trace = person[8] or user, person[9] or '', person[10] or ''
if person[2] ~= tid then
  return { 'UNKNOWN' }
end
if person[1] == 'inside' then
  if person[4] == id and person[5] == life and person[6] == conn then
    return { 'ADMITTED', person[7], nickname, region, 0, trace }
  end
  return { 'USED' }
end
if person[1] ~= 'offered' then
  return { 'USED' }
end
local left_ms = person[3] - (redis.call('HGET', keys.world, 'clock_ms') or 0)
if left_ms <= 0 then
  return { 'EXPIRED' }
end
local row = server_row(keys, id)
if not row or row.life ~= life then
  redis.call('HSET', keys.people .. user, 'spared', 1)
  return { 'SERVER_UNKNOWN' }
end
if row_room(row) < 1 then
  redis.call('HSET', keys.people .. user, 'spared', 1)
  return { 'SERVER_FULL' }
end
local number = row.consumed + 1
server_keep(keys, id, row, row_with(row, { consumed = number }))
redis.call('ZREM', keys.offers, user)
redis.call('DEL', keys.granted .. tid)
redis.call('SADD', keys.inside .. id .. ':' .. life, user)
redis.call('HSET', keys.people .. user, 'state', 'inside', 'server', id, 'life', life, 'conn', conn, 'number', number)
redis.call('HDEL', keys.people .. user, 'exp', 'due', 'missed', 'spared', 'stuck')
redis.call('HINCRBY', keys.world, 'consumed', 1)
redis.call('HINCRBY', keys.world, 'ticket_left_ms', left_ms)
return { 'ADMITTED', number, nickname, region, left_ms, trace }
