-- Scores and ranks of members. KEYS: the board's rules, sorted set and members. ARGV: members.
-- Reply: 0, members of the board, and for each member score and rank, or two times nothing.

local meta, ranks, members = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', meta) == 0 then
  return {1, 0}
end
local reply = {0, redis.call('ZCARD', ranks)}
for i = 1, #ARGV do
  local stored = redis.call('HGET', members, ARGV[i])
  if stored then
    reply[2 * i + 1] = tonumber(string.sub(stored, 17))
    reply[2 * i + 2] = redis.call('ZRANK', ranks, string.sub(stored, 1, 16) .. ARGV[i]) + 1
  else
    reply[2 * i + 1], reply[2 * i + 2] = false, false
  end
end
return reply
