-- Stands before the scripts that update scores.
-- A board is a hash of its rules and its count of changes, a sorted set of the members, and a hash of what each has.
-- An element of the sorted set is the tie, 16 hexadecimal digits, and the name: among equal scores the sorted set orders
-- by text, so the lower tie comes first. The lower score comes first as well: where the highest has rank 1, the sorted
-- set has the negative score. The hash has the tie and the score in decimal digits.
-- Scores are floats of 53 bits here. All whole numbers up to LIMIT are exact, and so are the differences below.

local LIMIT = 9007199254740992
local format, sub, floor = string.format, string.sub, math.floor

-- The score after an update; nil when it is beyond the limit. `had` is nil for a new member.
local function next_score(mode, had, given, ascending)
  if mode == 'r' or (mode == 'b' and had == nil) then
    return given
  end
  if mode == 'b' then
    if (ascending and given < had) or (not ascending and given > had) then
      return given
    end
    return had
  end
  had = had or 0
  if mode == 'd' then
    given = 0 - given
  end
  -- The sum itself could be rounded to the limit.
  if given > LIMIT - had or given < 0 - LIMIT - had then
    return nil
  end
  return had + given
end

-- The tie after an update. `kept` is the one that the member has, nil unless its score stays as it was.
local function next_tie(rule, mode, kept, drawn, sequence)
  if kept and (rule ~= 'random' or mode == 'b') then
    return kept
  end
  if rule == 'random' then
    return drawn
  end
  local high, low = floor(sequence / 4294967296), sequence % 4294967296
  if rule == 'first' then
    return format('%08x%08x', high, low)
  end
  return format('%08x%08x', 4294967295 - high, 4294967295 - low)
end

-- Puts a member in its place; returns its rank.
local function place(ranks, members, member, ascending, had_tie, had, tie, score)
  local element = tie .. member
  if tie ~= had_tie or score ~= had then
    if had_tie and tie ~= had_tie then
      redis.call('ZREM', ranks, had_tie .. member)
    end
    redis.call('ZADD', ranks, ascending and score or 0 - score, element)
    redis.call('HSET', members, member, tie .. format('%.0f', score))
  end
  return redis.call('ZRANK', ranks, element) + 1
end
