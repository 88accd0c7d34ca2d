-- gentables diff: the changes between two tables, their losses, and whether the data supports them. A table
-- is a table.csv, a header of TensorRT-LLM's, or a folder with table.csv or rows.
local changes = require "table.changes"
local fail = require "base.fail"
local file = require "core.file"
local formats = require "base.lazy" "formats.list"
local model = require "base.lazy" "formats.model"
local diff_formats = require "table.diff_formats"
local rows = require "core.rows"
local rows_folder = require "base.lazy" "rows.rows_folder"
local sequences = require "base.sequences"
local settings = require "base.lazy" "choose.settings"
local strategy_drift = require "base.lazy" "table.strategy_drift"
local tables = require "core.table"

-- ---- reading ----------------------------------------------------------------------------------

local function of_folder(path, wanted)
  if file.exists(path .. "/table.csv") then
    local read, arch = tables.read(path .. "/table.csv")
    return { table = fail.unless(read, arch), arch = arch, path = path .. "/table.csv", folder = path }
  end
  local source = model.load(path, rows_folder.only_arch(path, wanted, "table.csv"))
  local whole = model.for_format(source, formats.find "table").canonical
  return { table = whole, arch = source.arch, path = path, folder = path }
end

-- The benchmark files of a side that is a folder; {} where there are none.
local function files_of(side) return side.folder and rows_folder.files(side.folder, side.arch) or {} end

-- The dtype, op and mode for the cells of a header, which has none: those that the other side has in the most
-- cells.
local function axes_of(other)
  return sequences.largest(other.table:blocks(), function(block)
    return #block.fusions * #block.hidden_sizes * #block.num_tokens
  end)
end

local function of_header(path, text, wanted, axes)
  local foreign = require "reading.foreign"
  local result = foreign.read_text("trtllm-header", text, path, {})
  local names, found = {}, nil
  for i, one in ipairs(result.tables) do
    names[i] = one.arch or "one without a name"
    if one.arch == wanted or #result.tables == 1 then found = one end
  end
  if not found then
    fail.input("%s: has tables of %s; --arch with one of them is required", path, table.concat(names, ", "))
  end
  for _, cell in ipairs(axes and found.cells or {}) do
    cell.dtype, cell.op, cell.mode = axes.dtype, axes.op, axes.mode
  end
  local arch = found.arch or wanted or "sm90"
  local read, message = tables.parse(path, foreign.table_text(arch, found.cells))
  return { table = fail.unless(read, message), arch = arch, path = path, is_header = true }
end

local function of_csv(path)
  local read, arch = tables.read(path)
  return { table = fail.unless(read, arch), arch = arch, path = path }
end

-- The text of the file if it is a header; else nil or false.
local function header_text(path)
  local text = file.read(path)
  return text and not text:find("^\239?\187?\191?arch,") and text:find("{", 1, true) and text
end

local function is_folder(path) return file.list(path) ~= nil end

-- Reads both sides; a header last, because it takes its axes from the other side.
local function read_sides(paths, wanted)
  local sides, texts = {}, {}
  for i, path in ipairs(paths) do
    path = path:gsub("(.)/+$", "%1")
    texts[i] = not is_folder(path) and header_text(path)
    if not texts[i] then sides[i] = is_folder(path) and of_folder(path, wanted) or of_csv(path) end
  end
  for i = 1, 2 do
    local other = sides[3 - i]
    if texts[i] then
      sides[i] = of_header(paths[i], texts[i], wanted or other and other.arch, other and axes_of(other))
    end
  end
  return sides[1], sides[2]
end

-- Rows by themselves, as a source for formats/judge.lua.
local function source_of(paths, corner)
  rows_folder.read_provenance(paths)
  return { rows = rows_folder.read_rows(paths), files = paths, cells = {}, corner = corner }
end

-- The source (rows_folder.lua) of the rows with the times: those of --rows, else of the new folder, else of
-- the old one; nil without any. A folder has a spec with the rules of its choices.
local function evidence_of(args, old, new)
  local function of_folder_of_rows(folder)
    local source = rows_folder.read(folder, new.arch)
    settings.apply(source, { choose = args.choose, against = "none" }, folder)
    return source
  end
  for _, side in ipairs(args.rows and {} or { new, old }) do
    if #files_of(side) > 0 then return of_folder_of_rows(side.folder) end
  end
  if not args.rows then return nil end
  if #args.rows == 1 and is_folder(args.rows[1]) then return of_folder_of_rows(args.rows[1]) end
  local paths = {}
  for _, path in ipairs(args.rows) do
    path = path:gsub("(.)/+$", "%1")
    if is_folder(path) then
      local files = rows_folder.list(path, new.arch)
      table.move(files, 1, #files, #paths + 1, paths)
    else
      paths[#paths + 1] = { path = path }
    end
  end
  return source_of(paths, args.choose == "corner")
end

-- ---- the verb ---------------------------------------------------------------------------------

-- Drops changes that a header cannot express: it has no cells off its grid, and its number for an unmeasured
-- cell is that of the fallback.
local function drop_what_headers_lack(result, old, new)
  local lists = require "lists.lists"
  local kept = {}
  for _, change in ipairs(result.changes) do
    local silent = old.is_header and not change.old or new.is_header and not change.new
    local fallback = lists.arch(new.arch).fallback
    local unmeasured = old.is_header and not change.new and change.old.strategy == fallback
      or new.is_header and not change.old and change.new.strategy == fallback
    if not (silent or unmeasured) then kept[#kept + 1] = change end
  end
  result.changes, result.changed = kept, #kept
end

-- The records of a folder's rows; nil if the side is no folder, or has no rows.
local function records_of(side)
  local out = sequences.join(files_of(side), function(entry) return fail.unless(rows.records(entry.path)) end)
  return #out > 0 and out or nil
end

-- Adds to the result the strategies that became slower over all cells; requires the rows of both sides.
local function add_drift(result, old, new)
  local before, after = records_of(old), records_of(new)
  if not before or not after then return end
  result.strategies = strategy_drift.compare(before, after, result)
  for _, entry in ipairs(result.strategies or {}) do
    if entry.verdict == "slower" then result.material = result.material + 1 end
  end
end

return {
  summary = "Prints changes between two tables, their cost, and whether the data supports them.",
  positional = { name = "OLD NEW", min = 2, max = 2,
    help = "table.csv, TensorRT-LLM's header, or a folder with table.csv or rows" },
  options = {
    { name = "rows", value = "DIR", list = true,
      help = "folders or files of the rows with the times (default: those of NEW, else of OLD)" },
    { name = "arch", value = "ARCH", help = "arch, for a header or folder with several" },
    { name = "choose", value = "WHAT", one_of = { "bin", "corner" },
      help = "losses over the bin of a cell, or at its own shape, as the tables were chosen (default: as the "
        .. "spec beside the rows, else bin)" },
    { name = "formats", value = "NAME", one_of = diff_formats.names,
      help = "of " .. table.concat(diff_formats.names, ", ") .. " (default: text)" },
    { name = "json", help = "the same as --formats json" },
    { name = "fail-on", value = "WHAT", one_of = { "any", "material" }, default = "any",
      help = "exit code 1 for any difference, or only for a material one" },
    { name = "threshold", value = "SHARE", type = "number", least = 0, most = 10,
      help = "a difference of times up to this share is not material (default: 0.02)" },
    { name = "alpha", value = "P", type = "number", least = 0, most = 1,
      help = "probability of a false alarm, over all cells (default: 0.05)" },
    { name = "out", value = "FILE", help = "output file (default: standard output)" },
  },
  example = "cp tables/host/table.csv old.csv\n"
    .. "  gentables diff old.csv tables/host --formats md",
  run = function(args)
    if args.json and args.formats then
      fail.input("--json and --formats %s: one of them, and not both", args.formats)
    end
    local options = { threshold = args.threshold, alpha = args.alpha }
    local old, new = read_sides(args, args.arch)
    if old.arch ~= new.arch then
      fail.input("%s is of %s, %s of %s; two tables of one arch are required", args[1], old.arch, args[2],
        new.arch)
    end
    local function evidence()
      local source = evidence_of(args, old, new)
      local lookup = new.is_header and "log2" or nil -- TensorRT-LLM's
      if source then return source.rows, require "formats.judge"(source, old.table, new.table, lookup) end
    end
    local result = changes.compare(old.table, new.table, evidence, options)
    if old.is_header or new.is_header then drop_what_headers_lack(result, old, new) end
    result.arch, result.old, result.new = new.arch, args[1], args[2]
    add_drift(result, old, new)
    local text = diff_formats.of(args.json and "json" or args.formats or "text")(result)
    if args.out then
      fail.unless_done(file.write(args.out, text))
    else
      io.stdout:write(text)
    end
    local count = args.fail_on == "material" and 0 or result.changed
    return result.material + count > 0 and 1 or 0
  end,
}
