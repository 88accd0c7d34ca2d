-- Sources of a comparison: a report (a folder of CSVs), a trace (its report is made here), or a sweep with
-- the reports of trace pipeline.
--
--   sources.find(path) -> { kind = "report" | "trace", label, path }
--                      or { kind = "sweep", label, analysis, reports and collectives = {
--                           { threads, channels, rank (of reports), path }... } }
--   sources.read(path, label, options) -> a report as differences.lua takes it; of a trace also with its
--                                tree, as tree_diff.lua takes it, and its report with these options of
--                                rank_report.lua (default: its defaults)
local csv = require "codec.csv"
local fail = require "base.fail"
local file = require "core.file"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"
local tree_diff = require "trace.compare.tree_diff"

local sources = {}

local ANALYSIS = "tracelens_analysis"

local function base_name(path) return path:match("([^/]+)/*$") or path end

local function names_in(folder) return fail.unless(file.list(folder)) end

local function csvs_in(folder)
  return sequences.map(names_in(folder), function(name) return name:match("^(.+)%.csv$") end)
end

local function of_folder(path, label)
  local report = { label = label, sheets = {}, names = csvs_in(path) }
  for _, name in ipairs(report.names) do
    report.sheets[name] = fail.unless(csv.read(path .. "/" .. name .. ".csv"))
  end
  return report
end

-- The sheets that a trace's report would have, as read from its CSVs.
local function of_trace(path, label, options)
  local one = fail.unless(require("trace.ops.rank").open(path, { frames = options and options.stacks }))
  local list, notes = require("trace.reports.rank_report").sheets(one, options)
  local warning = require("trace.reports.rank_report").warning(path, notes)
  local report = { label = label, sheets = {}, names = {}, warning = warning,
    tree = tree_diff.tree(one.analysis) }
  for i, sheet in ipairs(list) do
    report.names[i] = sheet.name
    report.sheets[sheet.name] = fail.unless(csv.parse(sheets.csv(sheet), path))
  end
  return report
end

function sources.read(path, label, options)
  if file.status(path) == "folder" then return of_folder(path, label) end
  return of_trace(path, label, options)
end

-- ---- finding -----------------------------------------------------------------------------------

-- Entries of SWEEP/tracelens_analysis/{T}thread/FOLDER with matching names.
local function entries_in(analysis, folder, pattern)
  local out = {}
  for _, thread_name in ipairs(names_in(analysis)) do
    local threads = tonumber(thread_name:match("^(%d+)thread$"))
    local path = ("%s/%s/%s"):format(analysis, thread_name, folder)
    for _, name in ipairs(threads and file.status(path) == "folder" and names_in(path) or {}) do
      local channels, rank = name:match(pattern)
      if channels then
        out[#out + 1] = { threads = threads, channels = tonumber(channels), rank = tonumber(rank),
          path = path .. "/" .. name }
      end
    end
  end
  return ordering.sort(out, ordering.by("threads", "channels", "rank", "path"))
end

local function sweep_of(path, analysis)
  local label = base_name(path)
  if label == ANALYSIS then label = base_name(path:match("^(.*)/[^/]+/*$") or label) end
  local sweep = { kind = "sweep", label = label, path = path, analysis = analysis,
    reports = entries_in(analysis, "individual_reports", "^perf_(%d+)ch_rank(%d+)_csvs$"),
    collectives = entries_in(analysis, "collective_reports", "^collective_(%d+)ch_csvs$") }
  if #sweep.reports > 0 then return sweep end
  fail.input("%s: has no reports of a sweep, {T}thread/individual_reports/perf_{C}ch_rank{R}_csvs;"
    .. " run gentables trace pipeline", analysis)
end

local function is_sweep(path)
  return sequences.any(names_in(path), function(name)
    return name:find("^%d+thread$") and file.status(path .. "/" .. name) == "folder"
  end)
end

function sources.find(path)
  path = #path > 1 and path:gsub("/+$", "") or path
  local kind = fail.unless(file.status(path))
  if kind ~= "folder" then
    local base, ending = path:match("^(.*)%.(%w+)$")
    if ending == "xlsx" or ending == "sqlite" then
      fail.input("%s: %s are not read; give the folder of CSVs beside it (%s_csvs)", path,
        ending == "xlsx" and "workbooks" or "databases", base)
    end
    local label = base_name(path):gsub("%.gz$", ""):gsub("%.zst$", ""):gsub("%.json$", "")
    return { kind = "trace", label = label, path = path }
  end
  if file.status(path .. "/" .. ANALYSIS) == "folder" then return sweep_of(path, path .. "/" .. ANALYSIS) end
  if is_sweep(path) then return sweep_of(path, path) end
  if #csvs_in(path) > 0 then
    return { kind = "report", label = base_name(path):gsub("_csvs$", ""), path = path }
  end
  fail.input("%s: neither a report (a folder of CSVs) nor a sweep that trace pipeline has analysed", path)
end

return sources
