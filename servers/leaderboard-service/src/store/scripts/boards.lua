-- The boards behind a name, in the order of their names. KEYS[1]: the names of all boards.
-- ARGV[1]: '-', or '(' and the name. ARGV[2]: how many at most. ARGV[3], ARGV[4]: what the keys of a board's rules and of
-- its sorted set begin with; they are known only here, so this does not work on a cluster.
-- Reply: 0, and for each board name, direction, ties and members.

local reply = {0}
for _, name in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])) do
  local rules = redis.call('HMGET', ARGV[3] .. name, 'direction', 'ties')
  if rules[1] then
    reply[#reply + 1] = name
    reply[#reply + 1] = rules[1]
    reply[#reply + 1] = rules[2]
    reply[#reply + 1] = redis.call('ZCARD', ARGV[4] .. name)
  end
end
return reply
