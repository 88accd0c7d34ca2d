-- gentables check: compares committed tables with what the rows give. Writes nothing.
local changes = require "table.changes"
local settings = require "choose.settings"
local data_folder = require "surroundings.data_folder"
local file = require "core.file"
local file_fault = require "formats.file_fault"
local formats = require "formats.list"
local gaps = require "formats.gaps"
local json = require "codec.json"
local judge = require "formats.judge"
local model = require "formats.model"
local options = require "base.options"
local render = require "formats.render"
local sequences = require "base.sequences"
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
    local value = type(args[name]) == "table" and table.concat(args[name], ",") or args[name]
    if value then words[#words + 1] = ("--%s %s"):format(name, quoted(value)) end
  end
  return table.concat(words, " ")
end

-- One line about the cells that differ in the canonical table; nil if the old one cannot be read.
local function sum_of_changes(path, text, source)
  local old = tables.read(path)
  local new = old and tables.parse(path, text)
  local function evidence() return source.rows, judge(source, old, new) end
  return new and ("%s: %s"):format(path, changes.sum(changes.compare(old, new, evidence))) or nil
end

-- How an artifact (of render.files) differs from its file: { file, state, fault, difference, changes }; nil:
-- it does not.
local function compare(path, made, source)
  local text = made.text
  if file.holds(path, text) then return nil end
  if not file.exists(path) then return { file = path, state = "missing" } end
  local old, message = file.read(path)
  return { file = path, state = "differs", difference = old and difference(path, old, text) or message,
    fault = old and file_fault.of(path, old, text, made.format.marks),
    changes = path:find("table%.csv$") and sum_of_changes(path, text, source) or nil }
end

local function print_finding(found)
  if found.state == "missing" then return io.stdout:write(found.file, ": is missing\n") end
  io.stdout:write(found.fault and found.fault .. "\n" or "", found.difference, "\n",
    found.changes and found.changes .. "\n" or "")
end

local function print_result(result)
  for _, found in ipairs(result.differing) do print_finding(found) end
  for _, left in ipairs(result.stale) do
    io.stdout:write(("%s: has no rows here; remove it (%s)\n"):format(left.file, left.why))
  end
  if #result.differing > 0 then
    io.stdout:write(("%s: %d of %d files differ; to mend it: %s\n"):format(result.folder, #result.differing,
      result.files, result.command))
  elseif #result.stale == 0 then
    io.stdout:write(("%s: %d of %d files are what the rows give\n"):format(result.folder, result.files,
      result.files))
  end
end

return {
  difference = difference,
  summary = "Compares the tables in a folder with those of the rows; exit code 1 if they differ.",
  positional = data_folder.positional,
  options = options.with(settings.options, {
    { name = "data-dir", value = "DIR", help = "folder of benchmark.tp{N}.{arch}.csv", required = true },
    { name = "arch", value = "ARCH",
      help = "host, host-NAME, sm90 ... (default: that of the rows); all: every smXX of the folder, for the "
        .. "formats with several" },
    { name = "tables", value = "DIR", help = "the committed tables (default: those beside the rows)" },
    formats.option,
    { name = "mend", trusted = true, value = "COMMAND",
      help = "the command that check prints to mend a difference (default: gentables generate ...)" },
    { name = "json", help = "print JSON: the files that differ and how, stale ones, the command" },
  }),
  example = "gentables check --data-dir tables/host --arch host --tables tables/host",
  run = function(args)
    local folder = (args.tables or args.data_dir):gsub("(.)/+$", "%1")
    args.arch = args.arch or data_folder.arch(args.data_dir)
    local source = model.load(args.data_dir, args.arch, args, folder)
    local chosen = render.files(source, args.formats)
    gaps.print { source }
    local differing = sequences.map(chosen, function(made)
      return compare(folder .. "/" .. made.file, made, source)
    end)
    local stale = sequences.map(render.stale(source, args.formats, chosen, folder), function(left)
      return { file = folder .. "/" .. left.file, why = left.why }
    end)
    local result = { folder = folder, files = #chosen, differing = json.array(differing),
      stale = json.array(stale), command = #differing > 0 and mending_command(args, folder) or nil }
    if args.json then
      io.stdout:write(json.encode(result), "\n")
    else
      print_result(result)
    end
    return #differing + #stale > 0 and 1 or 0
  end,
}
