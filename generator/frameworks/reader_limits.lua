-- Limits for readers that try their ways in a fixed order, each up to a size or within a range, so that not
-- every series of choices can be expressed. A way is what a reader has a name for: one or several strategies.
-- The limits are those that lose least; the rest is a miss, which the files and reports list.
local by_bytes = require "sizes.by_bytes"
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

local MOST_LINES = 8

-- A miss as a line for people; `where`: the ranks, and more.
local function miss_in_words(miss, where)
  local range = miss.last and ("%s to %s"):format(quantities.bytes(miss.first), quantities.bytes(miss.last))
    or "from " .. quantities.bytes(miss.first) .. " on"
  local cost = miss.mean and ("; mean loss %.1f %%, at most %.1f %%"):format(100 * miss.mean, 100 * miss.most)
    or "; the loss was not measured"
  return ("%s, %s: its file answers %s, and the choice is %s%s"):format(where, range, miss.answered,
    miss.chosen, cost)
end

-- Whether a miss comes before another one in a list of those that lose most; an unknown loss comes first.
local function loses_more(a, b)
  if a.most ~= b.most then return (a.most or math.huge) > (b.most or math.huge) end
  return a.first < b.first
end

-- Those of many misses that lose most, in order.
local function worst_of(misses)
  local worst = {}
  for _, miss in ipairs(misses) do
    if #worst < MOST_LINES or loses_more(miss, worst[MOST_LINES]) then
      local at = math.min(#worst + 1, MOST_LINES)
      while at > 1 and loses_more(miss, worst[at - 1]) do
        worst[at], at = worst[at - 1], at - 1
      end
      worst[at] = miss
    end
  end
  return worst
end

-- The misses of one place as lines for people: those that lose most, and how many more there are.
function reader_limits.misses_in_words(misses, where)
  local lines = sequences.map(worst_of(misses), function(miss) return miss_in_words(miss, where) end)
  if #misses > MOST_LINES then
    lines[#lines + 1] = ("%s: and %d more ranges of sizes, which lose less; GAPS in the file has all"):format(
      where, #misses - MOST_LINES)
  end
  return lines
end

return reader_limits
