-- Stands before every script that changes something: signed changes are taken once, and repetitions are recognised.
-- KEYS[1]: where the answer to this idempotency key is kept, or ''. KEYS[2]: where this nonce is remembered, or ''.
-- ARGV[1]: digest of the request, 64 characters. ARGV[2], ARGV[3]: how long answers and nonces are kept, in seconds.
-- Replies begin with a number: 0 done, 1 no such board (with the place of the part), 2 beyond 53 bits (with the places
-- of part and item), 3 the idempotency key was used for another request, 4 no such member, 5 the name is taken,
-- 6 the nonce was used before.

if KEYS[2] ~= '' and not redis.call('SET', KEYS[2], '1', 'NX', 'EX', ARGV[3]) then
  return {6}
end
if KEYS[1] ~= '' then
  local kept = redis.call('GET', KEYS[1])
  if kept then
    if string.sub(kept, 1, 64) ~= ARGV[1] then
      return {3}
    end
    return cmsgpack.unpack(string.sub(kept, 65))
  end
end

-- What was refused has changed nothing and may be tried again: only what was done is kept.
local function done(reply)
  if KEYS[1] ~= '' then
    redis.call('SET', KEYS[1], ARGV[1] .. cmsgpack.pack(reply), 'EX', ARGV[2])
  end
  return reply
end
