-- Where the instance `id` lives and under which life, read from the hash `index`; nil if nowhere.
local function instance_entry(keys, id)
  local packed = redis.call('HGET', keys.index, id)
  if not packed then
    return nil
  end
  local service, life, nonce, name, ttl_ms, capacity =
    string.match(packed, '^([^\t]+)\t(%d+)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)$')
  return { service = service, life = life, nonce = nonce, name = name, ttl_ms = tonumber(ttl_ms), capacity = tonumber(capacity) }
end
