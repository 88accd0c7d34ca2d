-- The batch report: every folder of traces below a base is a configuration and gets one workbook over its
-- ranks beside its traces. If a trace or a configuration fails, it is reported, and the others continue; an
-- old report is kept until the new one is complete.
--
--   workbooks.run { base, pattern, extension, filters = { text... }, dry_run, all_kernels, output, csv, xlsx,
--               sqlite, jobs, gpus_per_node, replay = options of replay/replay_run.lua, or nil }
--
-- `page`: also write the page over the CSVs. Without a pattern the rank follows any of SPELLINGS; without
-- filters the traces are those of rank 0.
local fail = require "base.fail"
local file = require "core.file"
local gpus = require "lists.gpus"
local ordering = require "base.ordering"
local progress = require "system.progress"
local per_trace = require "trace.runs.per_trace"
local quantities = require "base.quantities"
local report_overview = require "trace.reports.report_overview"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"
local sheet_list = require "trace.reports.list"
local sheets = require "pages.sheets"
local trace_source = require "trace.runs.trace_source"

local workbooks = {}

workbooks.defaults = { extension = "json" }

local SPELLINGS = { "rank_", "rank-", "rank[", "rank" }
local FIRST_RANK = "0"
local NEEDS_TRACE = "-a and -r need the trace: digests have sums of kernels and no arguments of ops"
local DEEPEST = 64 -- folders below the base

-- ---- the traces --------------------------------------------------------------------------------

local function holds_all(path, filters)
  return sequences.all(filters, function(filter) return path:find(filter, 1, true) end)
end

-- Whether a path passes the filters.
local function is_wanted(path, filters)
  if filters then return holds_all(path, filters) end
  return sequences.any(SPELLINGS, function(spelling) return path:find(spelling .. FIRST_RANK, 1, true) end)
end

-- The number after the pattern in a file's name; nil: there is none.
local function number_after(pattern, name)
  local at = 1
  while true do
    local from, to = name:find(pattern, at, true)
    if not from then return nil end
    local digits = name:match("^%d+", to + 1)
    if digits then return math.tointeger(tonumber(digits)) end
    at = from + 1
  end
end

-- The rank in a file's name, or nil.
local function rank_in(name, pattern)
  local patterns = pattern and { pattern } or SPELLINGS
  return sequences.first(patterns, function(text) return number_after(text, name) end)
end

-- Calls take(folder, name) for every file below the folder.
local function walk(folder, take, depth)
  for _, name in ipairs(fail.unless(file.list(folder))) do
    local path = folder .. "/" .. name
    if file.status(path) ~= "folder" then
      take(folder, name)
    elseif depth < DEEPEST then
      walk(path, take, depth + 1)
    end
  end
end

local function base_name(path) return path:match("([^/]+)/*$") or path end

-- The name of the folder, also of paths without it, such as ".".
local function folder_name(folder)
  local name = base_name(folder)
  if name ~= "." and name ~= ".." then return name end
  return base_name(fail.unless(file.real_path(folder)))
end

local function output_of(folder, filters)
  local name = ("%s_%s_performance_report.xlsx"):format(folder_name(folder),
    table.concat(filters or { SPELLINGS[1] .. FIRST_RANK }, "_"))
  return folder .. "/" .. name:gsub("/", "_")
end

local function duplicate(files)
  for i = 2, #files do
    if files[i].rank == files[i - 1].rank then
      return ("%s and %s are both of rank %d; give a further -f that only one matches"):format(
        run_folder.given(files[i - 1]), run_folder.given(files[i]), files[i].rank)
    end
  end
end

local function complete(configuration, options)
  table.sort(configuration.files, ordering.by("rank", "path"))
  configuration.problem = duplicate(configuration.files)
  configuration.output = options.output or output_of(configuration.folder, options.filters)
end

-- The configurations below the base, the number of files without a rank in their names, and, without filters,
-- the number of files of other ranks.
function workbooks.find(options)
  local base = #options.base > 1 and options.base:gsub("/+$", "") or options.base
  if fail.unless(file.status(base)) ~= "folder" then
    fail.input("-b: %s is not a folder; give the one that contains the traces' folders", base)
  end
  local list, of_folder, nameless, others = {}, {}, 0, 0
  local extension = "." .. options.extension:gsub("^%.", "")
  walk(base, function(folder, name)
    if name:sub(-#extension) ~= extension then return end
    local path, rank = folder .. "/" .. name, rank_in(name, options.pattern)
    if not is_wanted(path, options.filters) then
      if not options.filters then
        others, nameless = others + (rank and 1 or 0), nameless + (rank and 0 or 1)
      end
      return
    end
    if not rank then
      nameless = nameless + 1
      return
    end
    local configuration = sequences.entry(list, of_folder, folder, function()
      return { folder = folder, files = {} }
    end)
    table.insert(configuration.files, sequences.merged(run_folder.entry(path), { rank = rank }))
  end, 0)
  for _, configuration in ipairs(list) do complete(configuration, options) end
  return list, nameless, others
end

-- ---- one rank, in a process of its own ---------------------------------------------------------

local function modules(options)
  local out = sheet_list.modules_over_ranks(options)
  if options.replay then out[#out + 1] = require "replay.chosen_ops" end
  return out
end

-- The data of a rank (trace/runs/trace_source.lua) for the report.
local function summary_of(source, entry, options)
  local out = { rank = entry.rank, info = source:info() }
  for _, part in ipairs(modules(options)) do out[part.field] = source:get(part) end
  if options.several then
    out.collectives = require("trace.collectives.rank_sheets").of(source, entry.rank)
  end
  return out
end

-- The configuration with only the files that could be read, their summaries, and the failures:
-- { { rank, message, note }... }.
local function read_ranks(configuration, options)
  local results = per_trace.map(configuration.files, function(source, entry)
    return summary_of(source, entry, options)
  end, { jobs = options.jobs, progress = options.bar, title = configuration.folder,
    needs_trace = (options.all_kernels or options.replay) and NEEDS_TRACE })
  options.bar:clear()
  local files, ranks, failures = {}, {}, {}
  for i, result in ipairs(results) do
    local entry = configuration.files[i]
    if result.ok then
      files[#files + 1], ranks[#ranks + 1] = entry, result.value
    else
      failures[#failures + 1] = { rank = entry.rank, message = result.message,
        note = run_folder.not_in_report(configuration, entry, result.message) }
    end
  end
  return sequences.merged(configuration, { files = files, all_files = configuration.files }), ranks, failures
end

-- ---- one configuration -------------------------------------------------------------------------

-- The incomplete parts: rows { rank, what, count }. failures: of read_ranks.
local function incomplete_sheet(ranks, failures)
  local sheet = { name = "incomplete", columns = { "rank", "what", "count" }, rows = {} }
  for _, one in ipairs(failures) do sheet.rows[#sheet.rows + 1] = { one.rank, one.note, 1 } end
  for _, rank in ipairs(ranks) do
    for _, flaw in ipairs(rank.info.flaws) do
      sheet.rows[#sheet.rows + 1] = { rank.rank, flaw.name, flaw.count }
    end
    if rank.info.gpu_events == 0 then sheet.rows[#sheet.rows + 1] = { rank.rank, "no GPU events", 0 } end
  end
  return #sheet.rows > 0 and sheet or nil
end

-- Ranks of a group of another size are not compared with the others.
local function add_collectives(list, configuration, ranks, notes, gpus_per_node)
  local compared = {}
  local more, left_out = run_folder.check(configuration, sequences.field(ranks, "info"))
  table.move(more, 1, #more, #notes + 1, notes)
  for i, rank in ipairs(ranks) do
    if not left_out[i] then compared[#compared + 1] = rank.collectives end
  end
  sequences.append(list, (require("trace.collectives.rank_sheets").make(compared, more,
    gpus_per_node)))
end

-- The sheets of a configuration, notes, and those among them that are on GPUs.
local function sheets_of(configuration, ranks, failures, options)
  local list = {}
  for _, part in ipairs(modules(options)) do sequences.append(list, part.make(ranks)) end
  local of_gpus = gpus.missing(sequences.field(ranks, "info"), true)
  local notes = sequences.join { of_gpus, sequences.field(failures, "note") }
  if #ranks > 1 then add_collectives(list, configuration, ranks, notes, options.gpus_per_node) end
  list[#list + 1] = incomplete_sheet(ranks, failures)
  return list, notes, sequences.set(of_gpus)
end

local function save(configuration, list, options)
  local path = configuration.output
  local folder = path:match("^(.*)/[^/]*$")
  if folder then fail.unless(file.make_folder(folder)) end
  local paths = sheets.paths(path:gsub("%.xlsx$", ""), options)
  sheets.save(list, paths)
  local ranks = quantities.counted(#configuration.files, "rank")
  for _, written in ipairs { paths.xlsx or false, paths.sqlite or false, paths.folder or false } do
    if written then print(("written   %s: %s"):format(written, ranks)) end
  end
end

local function page_of(configuration) return (configuration.output:gsub("%.xlsx$", "")) .. ".html" end

-- Writes the page beside the report.
local function write_page(configuration, ranks, options, notes)
  local base = configuration.output:gsub("%.xlsx$", "")
  local paths = sheets.paths(base, options)
  local files = sequences.join { { paths.xlsx or nil }, { paths.sqlite or nil } }
  report_overview.write_batch(page_of(configuration), configuration, base .. "_csvs",
    { infos = sequences.field(ranks, "info"), files = files, notes = notes })
  print(("written   %s: %s"):format(page_of(configuration), report_overview.WORDS))
end

-- Writes the replay's report beside the other one, and the ops' files beside it.
local function replay(configuration, ranks, options)
  local chosen_ops = require "replay.chosen_ops"
  local path = configuration.output:gsub("_performance_report%.xlsx$", ""):gsub("%.xlsx$", "")
    .. "_node_replay_report"
  local lists = {}
  for i, rank in ipairs(ranks) do
    lists[i] = rank[chosen_ops.field]
    lists[i].path = configuration.files[i].path
  end
  local chosen = chosen_ops.choose(lists)
  if #chosen.gemm + #chosen.conv == 0 then
    fail.input("%s", chosen_ops.nothing(configuration.files, chosen))
  end
  local how = setmetatable({ name = configuration.folder, ops_folder = path .. "_ops" },
    { __index = options.replay })
  local replay_run = require "replay.replay_run"
  local list, summary = replay_run.run(chosen, how)
  sheets.save(list, sheets.paths(path, options))
  replay_run.print_summary(summary, options.xlsx and path .. ".xlsx" or path .. "_csvs")
  replay_run.raise(summary)
  if summary.timed == 0 then fail.work("%s: %s", configuration.folder, replay_run.NONE_TIMED) end
end

-- Prints the notes that have no line yet.
local function print_notes(configuration, notes, of_gpus, printed)
  for _, note in ipairs(notes) do
    local text = of_gpus[note] and note or configuration.folder .. ": " .. note
    if not printed[text] then fail.note("note: %s", text) end
    printed[text] = true
  end
end

-- Writes a report; returns the number of traces that are not in it because they could not be read.
local function report(given, options)
  if given.problem then fail.input("%s", given.problem) end
  options = setmetatable({ several = #given.files > 1 }, { __index = options })
  local configuration, ranks, failures = read_ranks(given, options)
  if #ranks == 0 then fail.input("%s: no report: %s", given.folder, failures[1].message) end
  for _, one in ipairs(failures) do
    fail.note("%s", one.message)
    options.printed[configuration.folder .. ": " .. one.note] = true
  end
  local list, notes, of_gpus = sheets_of(configuration, ranks, failures, options)
  save(configuration, list, options)
  if options.page then
    write_page(configuration, ranks, options, notes)
  elseif options.csv then
    os.remove(page_of(configuration)) -- an earlier one shows CSVs that are replaced now
  end
  print_notes(configuration, notes, of_gpus, options.printed)
  if options.replay then replay(configuration, ranks, options) end
  return #failures
end

local function show(configuration)
  print(("%s -> %s"):format(configuration.folder, configuration.output))
  for _, entry in ipairs(configuration.files) do
    print(("  rank %d  %s"):format(entry.rank, run_folder.given(entry)))
  end
  if configuration.problem then print("  problem: " .. configuration.problem) end
end

-- ---- all of them -------------------------------------------------------------------------------

-- The traces below the base with other endings, as the end of a message; "" without any.
local function other_endings(options)
  for _, extension in ipairs { "json", "gz", "zst" } do
    local count = 0
    walk(options.base, function(_, name)
      if name:find("%.json") and name:sub(-#extension - 1) == "." .. extension then count = count + 1 end
    end, 0)
    if count > 0 and extension ~= options.extension then
      local files = count == 1 and "1 file ends" or count .. " files end"
      return ("; %s in .%s: give -e %s"):format(files, extension, extension)
    end
  end
  return ""
end

local function nothing_found(options, nameless)
  run_folder.refuse_own_digests(options.base)
  if nameless > 0 then
    fail.input("%s: none of %s has %q and a number in its name; -p TEXT gives the text that is before the"
      .. " number, and -f TEXT one that is in all paths; or run gentables trace pipeline %s, which finds the"
      .. " ranks in the traces", options.base,
      quantities.counted(nameless, "file"), options.pattern or "rank", options.base)
  end
  local filters = options.filters and table.concat(options.filters, " and ")
    or table.concat(SPELLINGS, FIRST_RANK .. ", ") .. FIRST_RANK
  fail.input("%s: no file below ends in .%s and has %s in its path; see -e and -f%s", options.base,
    options.extension, filters, other_endings(options))
end

-- The line on ranks that are left out because no filter is given.
local function note_others(options, others)
  if others == 0 then return end
  fail.note("without -f only rank 0 is reported; -f %s also reports %s of other ranks",
    options.pattern or "rank", quantities.counted(others, "trace"))
end

-- Writes all reports; returns the exit code.
function workbooks.run(given)
  local options = setmetatable({}, { __index = function(_, key)
    local value = given[key]
    if value == nil then value = workbooks.defaults[key] end
    return value
  end })
  local list, nameless, others = workbooks.find(options)
  if #list == 0 then nothing_found(options, nameless) end
  if options.output and #list > 1 then
    fail.input("-o names one report, and there are %d configurations; give a narrower -b or -f",
      #list)
  end
  if not options.dry_run then trace_source.prepare() end
  options.printed = {}
  options.bar = progress.new(#sequences.join(sequences.field(list, "files")))
  local failed, refused, without = 0, 0, 0 -- failed ones, those with wrong input; traces without a report
  for _, configuration in ipairs(list) do
    if options.dry_run then
      show(configuration)
    else
      local ok, problem = pcall(report, configuration, options)
      if ok then
        without = without + problem
      else
        -- A signal or an error of this program ends the batch.
        if not fail.is_failure(problem) or problem.code > 128 then error(problem, 0) end
        failed = failed + 1
        if problem.code == 2 then refused = refused + 1 end
        fail.note(problem.message)
      end
    end
  end
  if refused == #list then return 2 end
  if without > 0 then
    fail.note("%s failed, the others are in the reports", quantities.counted(without, "trace"))
  end
  note_others(options, others)
  return failed + without > 0 and 1 or 0
end

return workbooks
