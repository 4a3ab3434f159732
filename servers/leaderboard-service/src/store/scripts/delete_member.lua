-- Removes a member. KEYS[3], KEYS[4], KEYS[5]: the board's rules, sorted set and members. ARGV[4]: member.
-- Reply: 0, the score it had, members left, number of the change.

local meta, ranks, members, member = KEYS[3], KEYS[4], KEYS[5], ARGV[4]
if redis.call('EXISTS', meta) == 0 then
  return {1, 0}
end
local stored = redis.call('HGET', members, member)
if not stored then
  return {4}
end
redis.call('ZREM', ranks, string.sub(stored, 1, 16) .. member)
redis.call('HDEL', members, member)
local sequence = redis.call('HINCRBY', meta, 'sequence', 1)
return done({0, tonumber(string.sub(stored, 17)), redis.call('ZCARD', ranks), sequence})
