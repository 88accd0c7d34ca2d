-- What changed between the trees of two traces: the sheet tree_diff. Nodes are ops with GPU events below
-- them, and the GPU events. The children of two matching nodes are aligned by their names, in order, and
-- matching ones are compared in turn. A child without a match was added or removed; the node above it is the
-- lowest common ancestor. Of matching GPU events only the times differ.
--
-- A row is a lowest common ancestor, by its path of names, with one kind of change, over all instances. The
-- differences of all rows add up to that of the GPU's time in both traces, summed over events; rows without a
-- difference are left out.
--
--   tree_diff.tree(analysis) -> plain tables, for tree_diff.sheet
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local tree_diff = {}

tree_diff.NAME = "tree_diff"

local WINDOW = 1000 -- children that are aligned at once
local MOST_NAMES = 8 -- in a cell
local SEPARATOR = " > "

-- ---- trees ------------------------------------------------------------------------------------

-- { name, time (µs, with all below), children } of the whole trace; the names of nodes are texts.
function tree_diff.tree(analysis)
  local names, parents, times, texts = analysis:tree()
  local root, nodes = { name = "trace", time = 0.0, children = {} }, {}
  for i, name in ipairs(names) do
    nodes[i] = { name = texts[name], time = times[i], children = {}, is_event = false }
    local above = nodes[parents[i]] or root
    above.children[#above.children + 1] = nodes[i]
  end
  for i = #names, 1, -1 do
    local above = nodes[parents[i]] or root
    nodes[i].is_event = #nodes[i].children == 0
    above.time = above.time + nodes[i].time
  end
  return root
end

-- ---- alignment --------------------------------------------------------------------------------

-- Pairs { i, j } of equal names in parts of two lists, in order of both: as many as possible.
local function longest(a, b, first_a, last_a, first_b, last_b)
  local length, steps = {}, {}
  for j = first_b, last_b + 1 do length[j] = 0 end
  for i = last_a, first_a, -1 do
    local diagonal, row = 0, {}
    for j = last_b, first_b, -1 do
      local below, right = length[j], length[j + 1]
      if a[i].name == b[j].name then
        length[j], row[j] = diagonal + 1, "match"
      elseif right > below then
        length[j], row[j] = right, "right"
      else
        row[j] = "below"
      end
      diagonal = below
    end
    steps[i] = row
  end
  local pairs_of, i, j = {}, first_a, first_b
  while i <= last_a and j <= last_b do
    local step = steps[i][j]
    if step == "match" then pairs_of[#pairs_of + 1] = { i, j } end
    if step ~= "right" then i = i + 1 end
    if step ~= "below" then j = j + 1 end
  end
  return pairs_of
end

-- The same for lists of any length: in windows, of which only the first half is certain.
local function in_windows(a, b, first, last_a, last_b)
  local out, i, j = {}, first, first
  while i <= last_a and j <= last_b do
    local end_a, end_b = math.min(i + WINDOW - 1, last_a), math.min(j + WINDOW - 1, last_b)
    local is_last = end_a == last_a and end_b == last_b
    local next_i, next_j = i + WINDOW // 2, j + WINDOW // 2
    local is_first = true
    for _, pair in ipairs(longest(a, b, i, end_a, j, end_b)) do
      local is_certain = pair[1] < i + WINDOW // 2 and pair[2] < j + WINDOW // 2
      if is_last or is_certain or is_first then
        out[#out + 1], next_i, next_j, is_first = pair, pair[1] + 1, pair[2] + 1, false
      end
    end
    if is_last then break end
    i, j = next_i, next_j
  end
  return out
end

-- The matching children of two nodes: pairs of nodes; and those of each without a match.
local function align(a, b)
  local first, last_a, last_b, matched = 1, #a, #b, {}
  while first <= math.min(last_a, last_b) and a[first].name == b[first].name do
    matched[#matched + 1] = { first, first }
    first = first + 1
  end
  while last_a >= first and last_b >= first and a[last_a].name == b[last_b].name do
    matched[#matched + 1] = { last_a, last_b }
    last_a, last_b = last_a - 1, last_b - 1
  end
  sequences.append(matched, in_windows(a, b, first, last_a, last_b))
  local has_a, has_b = {}, {}
  local both = sequences.map(matched, function(pair)
    has_a[pair[1]], has_b[pair[2]] = true, true
    return { a[pair[1]], b[pair[2]] }
  end)
  local only_a = sequences.map(a, function(node, i) return not has_a[i] and node or nil end)
  local only_b = sequences.map(b, function(node, i) return not has_b[i] and node or nil end)
  return both, only_a, only_b
end

-- ---- differences ------------------------------------------------------------------------------

local function total(nodes)
  local sum = 0.0
  for _, node in ipairs(nodes) do sum = sum + node.time end
  return sum
end

local function count_names(names, nodes)
  for _, node in ipairs(nodes) do names[node.name] = (names[node.name] or 0) + 1 end
end

-- Adds a change at a pair of nodes to the one with the same path and kind.
local function add(found, path, change, a, b)
  local key = table.concat(path, "\0") .. "\0\0" .. change
  local row = sequences.entry(found, found.of_key, key, function()
    return { path = table.move(path, 1, #path, 1, {}), change = change, count = 0, a = 0.0, b = 0.0,
      names_a = {}, names_b = {} }
  end)
  row.count, row.a, row.b = row.count + 1, row.a + total(a), row.b + total(b)
  if change ~= "time" then
    count_names(row.names_a, a)
    count_names(row.names_b, b)
  end
end

local function change_of(only_a, only_b)
  if #only_a > 0 and #only_b > 0 then return "replaced" end
  return #only_a > 0 and "removed" or "added"
end

-- Compares two matching nodes; path: the names from the root to them.
local function compare(found, path, a, b)
  local both, only_a, only_b = align(a.children, b.children)
  if #only_a + #only_b > 0 then add(found, path, change_of(only_a, only_b), only_a, only_b) end
  local events_a, events_b = {}, {}
  for _, pair in ipairs(both) do
    if pair[1].is_event and pair[2].is_event then
      events_a[#events_a + 1], events_b[#events_b + 1] = pair[1], pair[2]
    else
      path[#path + 1] = pair[1].name
      compare(found, path, pair[1], pair[2])
      path[#path] = nil
    end
  end
  if #events_a > 0 then add(found, path, "time", events_a, events_b) end
end

-- "3 x gemm, relu", most frequent first.
local function names_of(names)
  local list = sequences.map(ordering.sorted_keys(names), function(name)
    return { name = name, count = names[name] }
  end)
  table.sort(list, ordering.by("-count", "name"))
  local shown = sequences.map(list, function(one)
    return one.count > 1 and ("%d x %s"):format(one.count, one.name) or one.name
  end)
  local text = table.concat(shown, ", ", 1, math.min(#shown, MOST_NAMES))
  if #shown > MOST_NAMES then text = ("%s and %d more"):format(text, #shown - MOST_NAMES) end
  return text ~= "" and text or nil
end

local function row_of(one)
  local change, difference = one.change, one.b - one.a
  if change == "time" then change = difference > 0 and "slower" or "faster" end
  return { one.path[#one.path] or "trace", change, one.count, names_of(one.names_a), names_of(one.names_b),
    one.a, one.b, difference, one.a > 0 and 100 * difference / one.a or nil,
    table.concat(one.path, SEPARATOR) }
end

-- The sheets of reports with a tree (the first is the base): one for each other report with one.
function tree_diff.sheets(reports)
  local base, out = reports[1], {}
  for i = 2, #reports do
    local other = reports[i]
    if base.tree and other.tree then
      local sheet = tree_diff.sheet(base.tree, other.tree, base.label, other.label)
      if #reports > 2 then sheet.name = ("%s_%s"):format(tree_diff.NAME, other.label) end
      out[#out + 1] = sheet
    end
  end
  return out
end

-- The sheet of two trees; label_a, label_b: those of the traces.
function tree_diff.sheet(a, b, label_a, label_b)
  local found = { of_key = {} }
  compare(found, {}, a, b)
  local changed = sequences.filter(found, function(one) return one.change ~= "time" or one.a ~= one.b end)
  local rows = ordering.falling(sequences.map(changed, row_of), function(row) return math.abs(row[8]) end)
  return { name = tree_diff.NAME, rows = rows, columns = { "lowest common ancestor", "change", "instances",
    "only " .. label_a, "only " .. label_b, label_a .. "::GPU time (µs)", label_b .. "::GPU time (µs)",
    "GPU time (µs)_diff", "GPU time_pct", "path" } }
end

return tree_diff
