-- The nonce of a registration that names its former life: all attempts of that life are one. Who has the nonce of `life` in
-- the index is the same process, which may not have heard the answer.
local function nonce_after(life)
  return 'after ' .. life
end
