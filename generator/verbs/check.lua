-- gentables check: compares committed tables with what the rows give. Writes nothing.
local changes = require "table.changes"
local settings = require "choose.settings"
local file = require "core.file"
local formats = require "formats.list"
local gaps = require "formats.gaps"
local judge = require "formats.judge"
local model = require "formats.model"
local options = require "base.options"
local render = require "formats.render"
local tables = require "core.table"

local SHOWN_LINES = 8

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n?") do lines[#lines + 1] = line end
  if lines[#lines] == "" then lines[#lines] = nil end
  return lines
end

-- The number of lines that two lists have in common at their starts, and at their ends.
local function count_common(old, new)
  local head, tail, shorter = 0, 0, math.min(#old, #new)
  while head < shorter and old[head + 1] == new[head + 1] do head = head + 1 end
  while tail < shorter - head and old[#old - tail] == new[#new - tail] do tail = tail + 1 end
  return head, tail
end

local function show(out, mark, lines, first, last)
  for i = first, math.min(last, first + SHOWN_LINES - 1) do out[#out + 1] = mark .. lines[i] end
  local more = last - first + 1 - SHOWN_LINES
  if more > 0 then out[#out + 1] = ("%s ... and %d more lines"):format(mark, more) end
end

-- The difference of two texts in the form of diff -u, as one hunk: from the first line that differs to the
-- last.
local function difference(path, old_text, new_text)
  local old, new = lines_of(old_text), lines_of(new_text)
  local head, tail = count_common(old, new)
  local old_count, new_count = #old - tail - head, #new - tail - head
  local out = { "--- " .. path, "+++ what the rows give",
    ("@@ -%d,%d +%d,%d @@"):format(head + 1, old_count, head + 1, new_count) }
  show(out, "-", old, head + 1, #old - tail)
  show(out, "+", new, head + 1, #new - tail)
  if old_count == 0 and new_count == 0 then out[#out + 1] = "(the end of the last line differs)" end
  return table.concat(out, "\n")
end

local function quoted(word)
  if word:find("^[%w@%%+=:,./_-]+$") then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function mending_command(args, out)
  if args.mend then return args.mend end
  local words = { quoted(gentables.program), "generate --data-dir", quoted(args.data_dir),
    "--arch", quoted(args.arch), "--out", quoted(out) }
  for _, name in ipairs { "formats", "against", "numerics", "workload", "choose" } do
    if args[name] then words[#words + 1] = ("--%s %s"):format(name, quoted(args[name])) end
  end
  return table.concat(words, " ")
end

-- One line about the cells that differ in the canonical table; "" if the old one cannot be read.
local function sum_of_changes(path, text, source)
  local old = tables.read(path)
  local new = old and tables.parse(path, text)
  local function evidence() return source.rows, judge(source, old, new) end
  return new and ("%s: %s\n"):format(path, changes.sum(changes.compare(old, new, evidence))) or ""
end

-- Compares one artifact with its file, and prints the difference. Returns whether they are the same.
local function compare(path, text, source)
  if file.holds(path, text) then return true end
  if not file.exists(path) then
    io.stdout:write(path, ": is missing\n")
  else
    local old, message = file.read(path)
    io.stdout:write(old and difference(path, old, text) or message, "\n")
    if path:find("table%.csv$") then io.stdout:write(sum_of_changes(path, text, source)) end
  end
  return false
end

return {
  difference = difference,
  summary = "Compares the tables in a folder with those of the rows; exit code 1 if they differ.",
  options = options.with(settings.options, {
    { name = "data-dir", value = "DIR", help = "folder of benchmark.tp{N}.{arch}.csv", required = true },
    { name = "arch", value = "ARCH", required = true,
      help = "host, host-NAME, sm90 ...; all: every smXX of the folder, for the formats with several" },
    { name = "tables", value = "DIR", help = "the committed tables (default: those beside the rows)" },
    { name = "formats", value = "LIST",
      help = "of " .. table.concat(formats.names(), ", ") .. " (default: all of the arch)" },
    { name = "mend", trusted = true, value = "COMMAND",
      help = "the command that check prints to mend a difference (default: gentables generate ...)" },
  }),
  example = "gentables check --data-dir tables/host --arch host --tables tables/host",
  run = function(args)
    local folder = (args.tables or args.data_dir):gsub("(.)/+$", "%1")
    local source = model.load(args.data_dir, args.arch, args, folder)
    local chosen, differing = render.files(source, args.formats), 0
    for _, made in ipairs(chosen) do
      local same = compare(folder .. "/" .. made.file, made.text, source)
      if not same then differing = differing + 1 end
    end
    gaps.print { source }
    local stale = render.stale(source, args.formats, chosen, folder)
    for _, left in ipairs(stale) do
      io.stdout:write(("%s/%s: has no rows here; remove it (%s)\n"):format(folder, left.file, left.why))
    end
    if differing == 0 and #stale > 0 then return 1 end
    if differing == 0 then
      io.stdout:write(("%s: %d of %d files are what the rows give\n"):format(folder, #chosen, #chosen))
      return 0
    end
    io.stdout:write(("%s: %d of %d files differ; to mend it: %s\n"):format(folder, differing, #chosen,
      mending_command(args, folder)))
    return 1
  end,
}
