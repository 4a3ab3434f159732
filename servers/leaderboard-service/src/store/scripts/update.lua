-- Updates one member. KEYS[3], KEYS[4], KEYS[5]: the board's rules, sorted set and members.
-- ARGV[4]: mode (r, i, d or b). ARGV[5]: score. ARGV[6]: member. ARGV[7]: a tie that was drawn.
-- Reply: 0, score, rank, members, number of the change, tie.

local meta, ranks, members = KEYS[3], KEYS[4], KEYS[5]
local mode, given, member = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local rules = redis.call('HMGET', meta, 'direction', 'ties')
if not rules[1] then
  return {1, 0}
end
local ascending = rules[1] == 'ascending'
local had_tie, had
local stored = redis.call('HGET', members, member)
if stored then
  had_tie, had = sub(stored, 1, 16), tonumber(sub(stored, 17))
end
local score = next_score(mode, had, given, ascending)
if not score then
  return {2, 0, 0}
end
local sequence = redis.call('HINCRBY', meta, 'sequence', 1)
local tie = next_tie(rules[2], mode, score == had and had_tie or nil, ARGV[7], sequence)
local rank = place(ranks, members, member, ascending, had_tie, had, tie, score)
return done({0, score, rank, redis.call('ZCARD', ranks), sequence, tie})
