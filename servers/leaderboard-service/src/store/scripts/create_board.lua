-- Creates a board. KEYS[3]: its rules. KEYS[4]: the names of all boards. ARGV[4]: name. ARGV[5]: direction. ARGV[6]: ties.

if redis.call('EXISTS', KEYS[3]) == 1 then
  return {5}
end
redis.call('HSET', KEYS[3], 'direction', ARGV[5], 'ties', ARGV[6], 'sequence', '0')
redis.call('ZADD', KEYS[4], 0, ARGV[4])
return done({0})
