-- Neighbouring ranks. KEYS: the board's rules, sorted set and members.
-- ARGV[1]: the first rank, or '' for those around ARGV[3]. ARGV[2]: how many, or how many on each side.
-- Reply: 0, members of the board, the first rank, and for each row member and score.

local meta, ranks, members = KEYS[1], KEYS[2], KEYS[3]
local direction = redis.call('HGET', meta, 'direction')
if not direction then
  return {1, 0}
end
local from, to
if ARGV[1] ~= '' then
  from = tonumber(ARGV[1]) - 1
  to = from + tonumber(ARGV[2]) - 1
else
  local stored = redis.call('HGET', members, ARGV[3])
  if not stored then
    return {4}
  end
  local at = redis.call('ZRANK', ranks, string.sub(stored, 1, 16) .. ARGV[3])
  from = math.max(0, at - tonumber(ARGV[2]))
  to = at + tonumber(ARGV[2])
end
local reply = {0, redis.call('ZCARD', ranks), from + 1}
if to >= from then
  local rows = redis.call('ZRANGE', ranks, string.format('%.0f', from), string.format('%.0f', to), 'WITHSCORES')
  for i = 1, #rows, 2 do
    local score = tonumber(rows[i + 1])
    reply[i + 3] = string.sub(rows[i], 17)
    reply[i + 4] = direction == 'ascending' and score or 0 - score
  end
end
return reply
