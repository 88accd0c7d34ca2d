-- Limits for readers that try their ways in a fixed order, each up to a size or within a range, so that not
-- every series of choices can be expressed. A way is what a reader has a name for: one or several strategies.
-- The limits are those that lose least; the rest is a miss, which the files and reports list.
local by_bytes = require "sizes.by_bytes"
local core_text = require "core.text"
local lookup_rule = require "core.lookup_rule"
local ordering = require "base.ordering"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local reader_limits = {}

-- The largest size that a file of limits names; beyond it is no message.
reader_limits.NEVER = 1 << 62

-- The tables (of sizes.by_bytes) of these numbers of ranks that have one, each with the strategies of its
-- ways: way_on(ranks) -> function, name of a strategy -> way.
function reader_limits.tables(source, worlds, way_on, fusion, mode)
  return sequences.map(worlds, function(tp)
    local way_of = way_on(tp)
    local function may_win(strategy) return way_of(strategy.name) ~= nil end
    local tp_tables = by_bytes.tp_tables(source, may_win, fusion, nil, mode)
    return sequences.find(tp_tables, function(of) return of.tp == tp end)
  end)
end

-- The range { first, last } of the sizes with one of these states, which follow each other; nil: no point has
-- one. `ways`: the losses of a table's ways; `path`, `count`: the states and the number of points of
-- ways:path(). The border between two sizes is that of the tables; the last range ends with the largest
-- measured size.
function reader_limits.range_of(tp_table, ways, path, count, ...)
  local first, last
  for _, state in ipairs { ... } do
    local range = path[state]
    first = range and math.min(first or range.first, range.first) or first
    last = range and math.max(last or range.last, range.last) or last
  end
  if not first then return nil end
  return { first = first > 1 and lookup_rule.border(ways:size(first - 1), ways:size(first)) + 1 or 0,
    last = last < count and lookup_rule.border(ways:size(last), ways:size(last + 1))
      or math.max(ways:size(last), tp_table.measured.last or 0) }
end

-- What a reader answers, for core.sizes. answer(size): the way; cuts: sizes after which it may change.
function reader_limits.answers(answer, cuts)
  local answers, first = {}, 1
  for _, cut in ipairs(ordering.sort(sequences.distinct(cuts))) do
    if cut >= 0 then
      answers[#answers + 1], first = { last = cut, way = answer(first) }, math.max(cut + 1, 1)
    end
  end
  answers[#answers + 1] = { way = answer(first) }
  return answers
end

-- Misses (of ways:misses() in ways_lua.c) as items of a Python list, tuples that begin with `head`, each on a
-- line of its own.
function reader_limits.misses_text(misses, head)
  local last = {}
  for i, bytes in ipairs(misses.last) do last[i] = bytes or "None" end
  local pieces = { "\n    (" .. head .. ", ", ", ", ', "', '", "', '"),' }
  return core_text.rows(pieces, { misses.first, last, misses.chosen, misses.answered }, "")
end

local MOST_LINES = 8

-- A miss, by its index, as a line for people; `where`: the ranks, and more.
local function miss_in_words(misses, at, where)
  local first, last, mean = quantities.bytes(misses.first[at]), misses.last[at], misses.mean[at]
  local range = last and ("%s to %s"):format(first, quantities.bytes(last)) or "from " .. first .. " on"
  local cost = mean and ("; mean loss %.1f %%, at most %.1f %%"):format(100 * mean, 100 * misses.most[at])
    or "; the loss was not measured"
  return ("%s, %s: its file answers %s, and the choice is %s%s"):format(where, range, misses.answered[at],
    misses.chosen[at], cost)
end

-- The indices of those of many misses that lose most, in order; an unknown loss comes first.
local function worst_of(misses)
  local worst, first = {}, misses.first
  local function loses_more(a, b)
    local loss, other = misses.most[a], misses.most[b]
    if loss ~= other then return (loss or math.huge) > (other or math.huge) end
    return first[a] < first[b]
  end
  for i in ipairs(first) do
    if #worst < MOST_LINES or loses_more(i, worst[MOST_LINES]) then
      local at = math.min(#worst + 1, MOST_LINES)
      while at > 1 and loses_more(i, worst[at - 1]) do
        worst[at], at = worst[at - 1], at - 1
      end
      worst[at] = i
    end
  end
  return worst
end

-- The misses of one place as lines for people: those that lose most, and how many more there are.
function reader_limits.misses_in_words(misses, where)
  local lines = sequences.map(worst_of(misses), function(at) return miss_in_words(misses, at, where) end)
  if #misses.first > MOST_LINES then
    lines[#lines + 1] = ("%s: and %d more ranges of sizes, which lose less; GAPS in the file has all"):format(
      where, #misses.first - MOST_LINES)
  end
  return lines
end

return reader_limits
