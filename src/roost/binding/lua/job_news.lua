-- Tell the feed what became of the job `id`: `started`, or the state that it turned into, and why.
-- @include feed_append
local function job_news(keys, now, id, event, why, type, parts)
  feed_append(keys, event, now, 10000, { 'event', event, 'job', id, 'why', why, 'type', type, 'parts', parts })
end
