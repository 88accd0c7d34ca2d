-- Formats of the differences of two tables (changes.lua): a row in `list` for each.
local changes = require "table.changes"
local ordering = require "base.ordering"
local rank_placement = require "lists.rank_placement"
local escape = require "codec.markdown".escape
local sequences = require "base.sequences"

local diff_formats = {}

-- ---- text -------------------------------------------------------------------------------------

local function line_of(change)
  local lost = change.lost and (" (the old takes %+.1f%%)"):format(100 * change.lost) or ""
  return changes.cell_in_words(change) .. ": " .. changes.strategy(change.old) .. " -> " ..
    changes.strategy(change.new) .. ": " .. changes.words[change.verdict] .. lost
end

local function text(result)
  local out = sequences.map(result.changes, function(change)
    return (changes.is_material(change) and "! " or "  ") .. line_of(change)
  end)
  for _, entry in ipairs(changes.shifted(result)) do
    out[#out + 1] = (entry.verdict == "slower" and "! " or "  ") .. changes.shift_in_words(entry)
  end
  out[#out + 1] = ("%s: %s"):format(result.arch, changes.sum(result))
  return table.concat(out, "\n") .. "\n"
end

-- ---- Markdown ---------------------------------------------------------------------------------

local MOST_ROWS = 100

-- The changes, material ones first.
local function by_weight(list)
  return ordering.falling(sequences.append({}, list), function(change)
    return changes.is_material(change) and math.abs(change.lost or 0) or -1
  end)
end

local function markdown(result)
  local out = { ("### Tables of %s: %s"):format(escape(result.arch), changes.sum(result)) }
  local function add(...) out[#out + 1] = string.format(...) end
  if result.changed > 0 then
    add("\n| TP | fusion | hidden | tokens | old | new | the old takes | |")
    add("|---:|---|---:|---:|---|---|---:|---|")
  end
  for i, change in ipairs(by_weight(result.changes)) do
    if i > MOST_ROWS then
      add("\n%d more.", result.changed - MOST_ROWS)
      break
    end
    local mark = changes.is_material(change) and "**" or ""
    local size = rank_placement.size_of(change)
    add("| %s | %s | %d | %d | %s | %s | %s | %s%s%s |", size, change.fusion, change.hidden_size,
      change.num_tokens, changes.strategy(change.old), changes.strategy(change.new),
      changes.percent(change.lost), mark, changes.words[change.verdict], mark)
  end
  local shifted = changes.shifted(result)
  if #shifted > 0 then out[#out + 1] = "" end
  for _, entry in ipairs(shifted) do add("- %s", changes.shift_in_words(entry)) end
  return table.concat(out, "\n") .. "\n"
end

-- ---- for programs -----------------------------------------------------------------------------

local function json(result)
  local writer = require "codec.json"
  local list = writer.array {}
  for i, change in ipairs(result.changes) do
    list[i] = { world_size = change.world_size, fusion = change.fusion, dtype = change.dtype, op = change.op,
      nodes = rank_placement.spans(change.nodes) and change.nodes or nil, mode = change.mode,
      hidden_size = change.hidden_size, num_tokens = change.num_tokens,
      old = change.old and change.old.strategy, new = change.new and change.new.strategy, lost = change.lost,
      old_predicted = change.old and change.old.predicted,
      new_predicted = change.new and change.new.predicted,
      p = change.p, verdict = change.verdict, material = changes.is_material(change) }
  end
  local strategies = result.strategies and writer.array {}
  for i, entry in ipairs(result.strategies or {}) do
    strategies[i] = { strategy = entry.strategy, shift = entry.shift, cells = entry.cells, p = entry.p,
      verdict = entry.verdict or "noise" }
  end
  return writer.encode({ format = "gentables diff", version = 1, arch = result.arch,
    compared = result.compared,
    changed = result.changed, material = result.material, method = "holm", alpha = result.alpha,
    threshold = result.threshold, changes = list, strategies = strategies }) .. "\n"
end

local function xml(value)
  local codes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
  return (tostring(value):gsub('[&<>"]', codes))
end

-- A test for each cell that changed, and one for all others; a material change is a failure.
local function junit(result)
  local same, shifted = math.max(0, result.compared - result.changed), changes.shifted(result)
  local out = { '<?xml version="1.0" encoding="UTF-8"?>',
    ('<testsuite name="gentables diff %s" tests="%d" failures="%d" errors="0" skipped="0">'):format(
      xml(result.arch), result.changed + 1 + #shifted, result.material),
    ('  <testcase classname="%s" name="%d cells are as they were"/>'):format(xml(result.arch), same) }
  for _, change in ipairs(result.changes) do
    out[#out + 1] = ('  <testcase classname="%s" name="%s">'):format(xml(result.arch),
      xml(changes.cell_in_words(change)))
    local kind = changes.is_material(change) and "failure" or "system-out"
    local attribute = kind == "failure" and (' message="%s"'):format(xml(changes.words[change.verdict])) or ""
    out[#out + 1] = ("    <%s%s>%s</%s>"):format(kind, attribute, xml(line_of(change)), kind)
    out[#out + 1] = "  </testcase>"
  end
  for _, entry in ipairs(shifted) do
    local kind, words = entry.verdict == "slower" and "failure" or "system-out", changes.shift_in_words(entry)
    out[#out + 1] = ('  <testcase classname="%s" name="%s as a whole"><%s>%s</%s></testcase>'):format(
      xml(result.arch), xml(entry.strategy), kind, xml(words), kind)
  end
  out[#out + 1] = "</testsuite>"
  return table.concat(out, "\n") .. "\n"
end

-- The text with characters encoded that have a meaning in GitHub's workflow commands; properties have more of
-- them than messages.
local function escaped(words, is_property)
  local codes = { ["%"] = "%25", ["\r"] = "%0D", ["\n"] = "%0A" }
  if is_property then codes[":"], codes[","] = "%3A", "%2C" end
  return (words:gsub(".", codes))
end

-- GitHub shows only ten annotations of a kind for each step, so material changes come first.
local function github(result)
  local out = {}
  local title = escaped("tables of " .. result.arch, true)
  local function add(kind, words)
    local file = escaped(result.old, true)
    out[#out + 1] = ("::%s file=%s,title=%s::%s"):format(kind, file, title, escaped(words))
  end
  for _, change in ipairs(by_weight(result.changes)) do
    if changes.is_material(change) then add("error", line_of(change)) end
  end
  for _, entry in ipairs(changes.shifted(result)) do
    add(entry.verdict == "slower" and "error" or "notice", changes.shift_in_words(entry))
  end
  if result.changed > 0 then add(result.material > 0 and "warning" or "notice", changes.sum(result)) end
  return #out > 0 and table.concat(out, "\n") .. "\n" or ""
end

diff_formats.list = {
  { name = "text", write = text },
  { name = "md", write = markdown },
  { name = "json", write = json },
  { name = "junit", write = junit },
  { name = "github", write = github },
}

diff_formats.names = sequences.field(diff_formats.list, "name")

-- function(result) -> text of the format with this name, which is one of diff_formats.names.
function diff_formats.of(name) return sequences.named(diff_formats.list, name).write end

return diff_formats
