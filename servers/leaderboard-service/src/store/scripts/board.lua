-- How a board is ordered, and its members. KEYS[1]: its rules. KEYS[2]: its sorted set.
-- Reply: 0, direction, ties, members.

local rules = redis.call('HMGET', KEYS[1], 'direction', 'ties')
if not rules[1] then
  return {1, 0}
end
return {0, rules[1], rules[2], redis.call('ZCARD', KEYS[2])}
