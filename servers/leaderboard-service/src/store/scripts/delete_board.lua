-- Deletes a board. KEYS[3], KEYS[4], KEYS[5]: its rules, sorted set and members. KEYS[6]: the names of all boards.
-- ARGV[4]: name.

if redis.call('EXISTS', KEYS[3]) == 0 then
  return {1, 0}
end
-- The memory is given back in the background.
redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5])
redis.call('ZREM', KEYS[6], ARGV[4])
return done({0})
