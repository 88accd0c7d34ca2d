-- The tables in TensorRT-LLM's customAllReduceUtils.h of any era that has them: as shipped, wrapped by
-- clang-format, or as the generator prints one. A table is [tp][fusion][hidden][tokens] = number; an index is
-- the floor of log2: of TP 2, 4, 8; hidden 128, 256...; tokens 1, 2, 4... Comments above a table that list
-- other values of an axis hold, and comments within it must agree. In the header that gentables writes, each
-- TP size has axes of its own, which are in comments, and -1 is unmeasured.
--
-- The numbers are those of AllReduceStrategyType. Those of an older enum cannot be distinguished from them.
-- So 1 and 2, which no present generator writes, are refused unless --era names their enum.
local lists = require "lists.lists"
local sequences = require "base.sequences"

local FIRST_TP, FIRST_HIDDEN, FIRST_TOKENS = 2, 128, 1
local MOST = { 15, 4, 16, 31 } -- TP sizes, fusions, hidden sizes, token counts

local header = {}

-- How to add an era: its name, its line of help, and the strategies by number.
header.eras = {
  { name = "today", help = "MIN_LATENCY 1, UB 2, ONESHOT 4, TWOSHOT 5", numbers = lists.trtllm_strategies() },
  { name = "oneshot1", help = "NCCL 0, ONESHOT 1, TWOSHOT 2, AUTO 3",
    numbers = { [0] = "NCCL", "ONESHOT", "TWOSHOT", "AUTO" } },
}
local AMBIGUOUS = { [1] = true, [2] = true }

-- ---- text to tokens ---------------------------------------------------------------------------

-- The values of an axis in a comment: Hidden:[128, 256] gives "Hidden", { 128, 256 }; of fusions names.
local function axis_in(comment)
  local what, list = comment:match("^%s*(%a+)%s*:%s*%[([^%]]*)%]")
  local values, pattern = {}, what == "Fusion" and "[%w_]+" or "%d+"
  for value in (list or ""):gmatch(pattern) do
    values[#values + 1] = what == "Fusion" and value or math.tointeger(tonumber(value)) or 0
  end
  return what, values
end

-- The facts in a comment about the list that it begins: TP=2, Fusion=NONE, Hidden:[128, 256].
local function comment_meaning(text)
  local what, value = text:match("^%s*(%a+)%s*=%s*([%w_]+)")
  if what == "TP" or what == "Fusion" then return what, value end
  local axis, numbers = axis_in(text)
  if axis == "Hidden" or axis == "Tokens" then return axis, numbers end
end

-- Skips blanks and comments: moves scan.at and scan.line. Keeps the facts of comments in scan.comments.
local function skip(source, scan)
  while true do
    local blank = scan.text:match("^%s+", scan.at)
    if blank then
      scan.line = scan.line + select(2, blank:gsub("\n", ""))
      scan.at = scan.at + #blank
    elseif scan.text:find("^//", scan.at) then
      local comment = scan.text:match("^//([^\n]*)", scan.at)
      local what, value = comment_meaning(comment)
      if what then scan.comments[what] = { value = value, line = scan.line } end
      scan.at = scan.at + 2 + #comment
    elseif scan.text:find("^/%*", scan.at) then
      local stop = scan.text:find("*/", scan.at + 2, true)
      if not stop then source:fail(scan.line, "a comment that does not end; is the file cut off?") end
      scan.line = scan.line + select(2, scan.text:sub(scan.at, stop):gsub("\n", ""))
      scan.at = stop + 2
    else
      return
    end
  end
end

local function peek(source, scan)
  skip(source, scan)
  return scan.text:sub(scan.at, scan.at)
end

local function take(source, scan, wanted)
  local char = peek(source, scan)
  if char == wanted then
    scan.at = scan.at + 1
    return
  end
  if char == "" then
    source:fail(scan.line, "the file ends within %s, which begins in line %d", scan.name, scan.first_line)
  end
  local word = scan.text:match("^[^%s,{}]*.?", scan.at)
  source:fail(scan.line, "%s in %s; expected %s", source.shown(word), scan.name, source.shown(wanted))
end

-- ---- tokens to a table ------------------------------------------------------------------------

local function number(source, scan)
  peek(source, scan)
  local word = scan.text:match("^%-?[%w_:.]+", scan.at) or ""
  if word == "" then take(source, scan, "a number") end
  local value = (word:find("^%d+$") or word == "-1") and math.tointeger(tonumber(word))
  if not value then
    source:fail(scan.line, "%s in %s; expected a number of AllReduceStrategyType", source.shown(word),
      scan.name)
  end
  scan.at = scan.at + #word
  return { value = value, line = scan.line }
end

-- { element, element... } of which `depth` more levels are lists. The facts in comments about a list are its
-- .comments.
local function list(source, scan, depth)
  take(source, scan, "{")
  scan.comments = {}
  peek(source, scan)
  local out = { line = scan.line, comments = scan.comments }
  while peek(source, scan) ~= "}" do
    if #out > 0 then
      take(source, scan, ",")
      if peek(source, scan) == "}" then break end
    end
    if #out == MOST[5 - depth] then source:fail(scan.line, "%s has too many entries", scan.name) end
    out[#out + 1] = depth == 1 and number(source, scan) or list(source, scan, depth - 1)
  end
  take(source, scan, "}")
  return out
end

-- Raises unless all lists of a level have one length: a missing number would shift all after it.
local function check_lengths(source, scan, lists_of_level, what)
  for _, entry in ipairs(lists_of_level) do
    if #entry ~= #lists_of_level[1] or #entry == 0 then
      source:fail(entry.line, "%s: %d %s, and %d in line %d", scan.name, #entry, what, #lists_of_level[1],
        lists_of_level[1].line)
    end
  end
end

-- Whether comments give the TP size axes of its own.
local function has_axes(tp_table)
  return tp_table.comments.Hidden ~= nil and tp_table.comments.Tokens ~= nil
end

local function check_shape(source, scan, table_of)
  check_lengths(source, scan, { table_of }, "TP sizes")
  check_lengths(source, scan, table_of, "fusions")
  local groups = { table_of }
  if has_axes(table_of[1]) then
    for i, tp_table in ipairs(table_of) do groups[i] = { tp_table } end
  end
  for _, tp_tables in ipairs(groups) do
    local fusions = sequences.join(tp_tables)
    check_lengths(source, scan, fusions, "hidden sizes")
    check_lengths(source, scan, sequences.join(fusions), "token counts")
  end
end

-- Raises if a comment names another TP size or fusion than that of the position.
local function check_said(source, scan, list_of, what, value)
  local comment = list_of.comments[what]
  if comment and comment.value ~= tostring(value) then
    source:fail(comment.line, "%s: the comment has %s=%s, but this entry is for %s", scan.name, what,
      comment.value, value)
  end
end

-- Raises unless a comment has as many numbers as there are entries, ascending.
local function check_axis(source, scan, comment, count, what)
  local numbers = comment.value
  local right = #numbers == count
  for i, value in ipairs(numbers) do
    right = right and value > (numbers[i - 1] or 0) and value <= source.SHAPE_MOST
  end
  if not right then
    source:fail(comment.line, "%s: the comment has %d %s, and the list %d; one ascending number for "
      .. "each is required", scan.name, #numbers, what, count)
  end
  return numbers
end

local function powers(first, count)
  local numbers = {}
  for i = 1, count do numbers[i] = first << (i - 1) end
  return numbers
end

-- The values of an axis that the comments above the table list, else `usual`.
local function listed(source, scan, what, words, usual)
  local comment = scan.axes[what]
  return comment and check_axis(source, scan, comment, #usual, words) or usual
end

-- The TP size, hidden sizes and token counts of the list at `index` of `count_of_tps`.
local function axes_of(source, scan, tp_table, index, count_of_tps, before)
  local count, tokens = #tp_table[1], #tp_table[1][1]
  if not has_axes(tp_table) then
    local tp = listed(source, scan, "TP", "TP sizes", powers(FIRST_TP, count_of_tps))[index]
    check_said(source, scan, tp_table, "TP", tp)
    return tp, listed(source, scan, "Hidden", "hidden sizes", powers(FIRST_HIDDEN, count)),
      listed(source, scan, "Tokens", "token counts", powers(FIRST_TOKENS, tokens))
  end
  local tp = tp_table.comments.TP and math.tointeger(tonumber(tp_table.comments.TP.value)) or 0
  if tp <= before or tp > 65535 then
    source:fail(tp_table.line, "%s: a list with axes of its own, and no TP size above %d", scan.name, before)
  end
  return tp, check_axis(source, scan, tp_table.comments.Hidden, count, "hidden sizes"),
    check_axis(source, scan, tp_table.comments.Tokens, tokens, "token counts")
end

-- ---- numbers to strategies --------------------------------------------------------------------

local function era_of(source)
  local name = source.options.era
  if not name then return header.eras[1], true end
  local era = sequences.named(header.eras, name)
  if era then return era end
  source:fail(nil, "--era %s is none; valid: %s", name, table.concat(sequences.map(header.eras,
    function(known) return ("%s (%s)"):format(known.name, known.help) end), " and "))
end

local function strategy_of(source, scan, entry, may_lack)
  local era, guessed = era_of(source)
  if entry.value == -1 and may_lack then return false end
  if guessed and AMBIGUOUS[entry.value] then
    source:fail(entry.line, "%s has %d: %s in an older enum, %s in today's; select one: --era oneshot1 or "
      .. "--era today", scan.name, entry.value, header.eras[2].numbers[entry.value], era.numbers[entry.value])
  end
  local name = era.numbers[entry.value]
  if not name then
    source:fail(entry.line, "%s has %d, which is no number of the enum of --era %s (%s)", scan.name,
      entry.value, era.name, era.help)
  elseif not lists.may_win(name) then
    source:fail(entry.line, "%s has %d, %s, which is no choice", scan.name, entry.value, name)
  end
  return name
end

-- The names of the fusions of a table, by index: those that the comments above it list, or the usual ones.
local function fusions_of(source, scan, count)
  local usual, comment = sequences.field(lists.trtllm_fusions(), "name"), scan.axes.Fusion
  if not comment then return usual end
  local seen = {}
  for _, name in ipairs(comment.value) do
    if not lists.contains(usual, name) or seen[name] then
      source:fail(comment.line, "%s: the comment has the fusion %s; each of %s may occur once", scan.name,
        name, table.concat(usual, ", "))
    end
    seen[name] = true
  end
  if #comment.value ~= count then
    source:fail(comment.line, "%s: the comment has %d fusions, and the list %d", scan.name, #comment.value,
      count)
  end
  return comment.value
end

-- The cells of a table, in the order of table.csv.
local function cells_of(source, scan, table_of)
  local cells, dtype, tp = {}, source:dtype("bfloat16"), 0
  local names = fusions_of(source, scan, #table_of[1])
  for t, tp_table in ipairs(table_of) do
    local hidden_sizes, num_tokens
    tp, hidden_sizes, num_tokens = axes_of(source, scan, tp_table, t, #table_of, tp)
    for f, fusion in ipairs(tp_table) do
      check_said(source, scan, fusion, "Fusion", names[f])
      for h, hidden in ipairs(fusion) do
        for n, entry in ipairs(hidden) do
          cells[#cells + 1] = source.record { world_size = tp, dtype = dtype, fusion = names[f],
            hidden_size = hidden_sizes[h], num_tokens = num_tokens[n],
            strategy = strategy_of(source, scan, entry, has_axes(tp_table)) }
        end
      end
    end
  end
  return cells
end

-- ---- the file ---------------------------------------------------------------------------------

local function line_of(text, at) return 1 + select(2, text:sub(1, at - 1):gsub("\n", "")) end

-- The axes in the comments of text[from, to]: { Hidden = { value =, line = }... }; of several the last.
local function axes_above(text, from, to)
  local axes = {}
  for at, comment in text:sub(from, to):gmatch("()//([^\n]*)") do
    local what, values = axis_in(comment)
    if what then axes[what] = { value = values, line = line_of(text, from + at - 1) } end
  end
  return axes
end

-- The definitions: { { sm =, name =, at =, from =, line = }... }; `from`: where the name is.
local function definitions(source)
  local found, seen = {}, {}
  for at, name, sm, stop in source.text:gmatch("()(AllReduceBestStrategyTableSM(%d+))%s*=%s*(){") do
    local line = line_of(source.text, at)
    if seen[sm] then source:fail(line, "%s occurs twice, first in line %d", name, seen[sm]) end
    seen[sm] = line
    found[#found + 1] = { sm = sm, name = name, at = stop, from = at, line = line }
  end
  return found
end

local function refuse_without(source)
  if source.text:find("AllReduceBestStrategyTableSM%d*%s*=?%s*$") then
    source:fail(nil, "ends within the name of a table; is the file cut off?")
  elseif source.text:find("HeuristicThresholdLP", 1, true) then
    source:fail(nil, "has thresholds (HeuristicThresholdLP) and no table; a header "
      .. "with AllReduceBestStrategyTableSM90 is required")
  end
  source:fail(nil, "defines no table AllReduceBestStrategyTableSM...")
end

local function read(source)
  local found, tables, above = definitions(source), {}, 1
  if #found == 0 then refuse_without(source) end
  for i, definition in ipairs(found) do
    local scan = { text = source.text, at = definition.at, line = definition.line,
      first_line = definition.line, name = definition.name, comments = {},
      axes = axes_above(source.text, above, definition.from) }
    scan.line = line_of(source.text, definition.at)
    local table_of = list(source, scan, 4)
    take(source, scan, ";")
    check_shape(source, scan, table_of)
    above = scan.at
    tables[i] = { arch = "sm" .. definition.sm, cells = cells_of(source, scan, table_of) }
  end
  return { tables = tables }
end

return setmetatable(header, { __call = function(_, source) return read(source) end })
