-- A user's record, out of its hash:
--
-- s, l       who holds the user: server id and life; empty: nobody
-- e, p       the epoch of this grant, and of the one before it; 0: there is none
-- st         A: held, M: on the move, R: released (a tombstone that keeps the epoch); empty: there is no record
-- since      when it was granted, µs, text; `why` it was
-- d, dl      of a move: where to, with a seat taken there; `ne` the epoch that it would get, `m` the id of the move, `dt` the
--            lease time at which the mark ends: from then on any reader resolves it
local function record_read(keys, kind, user)
  local kept = redis.call('HMGET', keys.users .. kind .. ':' .. user,
    's', 'l', 'e', 'p', 'st', 'since', 'why', 'd', 'dl', 'ne', 'dt', 'm')
  return { kind = kind, user = user, s = kept[1] or '', l = kept[2] or '', e = tonumber(kept[3] or '0'), p = kept[4] or '0',
    st = kept[5] or '', since = kept[6] or '0', why = kept[7] or '', d = kept[8] or '', dl = kept[9] or '',
    ne = tonumber(kept[10] or '0'), dt = tonumber(kept[11] or '0'), m = kept[12] or '' }
end
