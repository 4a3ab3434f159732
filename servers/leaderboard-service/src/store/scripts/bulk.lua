-- Updates members of one or several boards, all or none.
-- KEYS[3…]: rules, sorted set and members of each part's board. ARGV[4]: '1' to return ties as well.
-- ARGV[5…]: for each part the number of its items, and for each item mode, score, member and a tie that was drawn.
-- Reply: 0, for each part the number of its last change, and for each item score, rank and the tie if it was asked for.

local with_ties = ARGV[4] == '1'
local part_count = (#KEYS - 2) / 3
-- By the name of a board's hash of members: what is known of its members by name.
local known = {}
local parts, scores = {}, {}

-- First everything is calculated, so that nothing is changed when something is wrong.
local at = 5
for part = 1, part_count do
  local meta, members = KEYS[3 * part], KEYS[3 * part + 2]
  local rules = redis.call('HMGET', meta, 'direction', 'ties')
  if not rules[1] then
    return {1, part - 1}
  end
  local ascending = rules[1] == 'ascending'
  local first, count = at + 1, tonumber(ARGV[at])
  at = first + 4 * count
  parts[part] = {first, count, ascending, rules[2]}
  local states = known[members] or {}
  known[members] = states

  local names = {}
  for item = 0, count - 1 do
    local member = ARGV[first + 4 * item + 2]
    if not states[member] then
      states[member] = {}
      names[#names + 1] = member
    end
  end
  -- In portions: a call cannot have any number of arguments.
  for from = 1, #names, 500 do
    local to = math.min(from + 499, #names)
    local found = redis.call('HMGET', members, unpack(names, from, to))
    for i = from, to do
      local stored = found[i - from + 1]
      if stored then
        local state = states[names[i]]
        state.tie, state.had = sub(stored, 1, 16), tonumber(sub(stored, 17))
        state.next = state.had
      end
    end
  end

  for item = 0, count - 1 do
    local i = first + 4 * item
    local state = states[ARGV[i + 2]]
    local score = next_score(ARGV[i], state.next, tonumber(ARGV[i + 1]), ascending)
    if not score then
      return {2, part - 1, item}
    end
    state.next = score
    scores[#scores + 1] = score
  end
end

local reply, number = {0}, 0
for part = 1, part_count do
  reply[part + 1] = redis.call('HINCRBY', KEYS[3 * part], 'sequence', parts[part][2])
end
for part = 1, part_count do
  local ranks, members = KEYS[3 * part + 1], KEYS[3 * part + 2]
  local first, count, ascending, rule = unpack(parts[part])
  local before = reply[part + 1] - count
  for item = 0, count - 1 do
    local i = first + 4 * item
    local member = ARGV[i + 2]
    local state = known[members][member]
    number = number + 1
    local score = scores[number]
    local kept = score == state.had and state.tie or nil
    local tie = next_tie(rule, ARGV[i], kept, ARGV[i + 3], before + item + 1)
    local rank = place(ranks, members, member, ascending, state.tie, state.had, tie, score)
    state.tie, state.had = tie, score
    reply[#reply + 1] = score
    reply[#reply + 1] = rank
    if with_ties then
      reply[#reply + 1] = tie
    end
  end
end
return done(reply)
