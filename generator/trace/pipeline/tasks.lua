-- The products of trace pipeline for a sweep: a task for each, in the documented tree.
-- verbs/trace/pipeline.lua orders them.
--
-- A task has: name (of its stamp), stamp (of its inputs), files (of a complete product: a list, or a function
-- of the kept text), title, run() -> text that is kept with the stamp. run is called in a child, unless the
-- task has is_quick.
--
-- A pipeline has: out, analysis (folders), csv, xlsx, sqlite, forms (these as text), top_k, report_options,
-- options_text, gpus_per_node (nil: as in the traces), without (set of steps), gzip, threads_each.
local rank_sheets = require "trace.collectives.rank_sheets"
local configuration_report = require "trace.collectives.configuration_report"
local sequences = require "base.sequences"
local sources = require "trace.compare.sources"
local report_pairs = require "trace.compare.report_pairs"
local pack = require "trace.runs.pack"
local fail = require "base.fail"
local file = require "core.file"
local gemm_command = require "trace.gemm.gemm_command"
local ordering = require "base.ordering"
local merging = require "trace.merge.merging"
local rank_report = require "trace.reports.rank_report"
local variance_plots = require "trace.gemm.variance_plots"
local sheets = require "pages.sheets"
local stamps = require "trace.pipeline.stamps"
local trace_source = require "trace.runs.trace_source"
local variance = require "trace.gemm.variance"
local against = require "trace.compare.against"

local tasks = {}

local function folder_of(path) return path:match("^(.*)/[^/]*$") end

local function name_of(entry)
  local name = "perf"
  if entry.channels then name = ("%s_%dch"):format(name, entry.channels) end
  if entry.rank then return ("%s_rank%d"):format(name, entry.rank) end
  return ("%s_%s"):format(name, entry.path:match("[^/]*$"))
end

local function report_base(pipeline, entry)
  local folder = entry.threads and ("%dthread/"):format(entry.threads) or ""
  return ("%s/%sindividual_reports/%s"):format(pipeline.analysis, folder, name_of(entry))
end

-- The paths of a list of sheets saved at `base`: the list exists if at least one of these does.
local function saved(pipeline, base)
  local paths = sheets.paths(base, pipeline)
  return sequences.map({ "xlsx", "sqlite", "folder" }, function(kind) return paths[kind] or nil end)
end

local function save(pipeline, list, base)
  fail.unless(file.make_folder(folder_of(base)))
  sheets.save(list, sheets.paths(base, pipeline))
end

-- Removes products of an earlier run that today's inputs do not give.
local function remove(pipeline, base)
  for _, path in ipairs(saved(pipeline, base)) do
    for _, name in ipairs(file.list(path) or {}) do
      if name:find("%.csv$") then os.remove(path .. "/" .. name) end
    end
    os.remove(path)
  end
end

-- Writes the report of a trace. Returns rows about incomplete parts.
local function write_report(pipeline, one, entry, base)
  local options = sequences.merged(pipeline.report_options, { rank = entry.rank })
  local list, notes = rank_report.sheets(one, options)
  save(pipeline, list, base)
  return notes
end

-- The report of a trace, and its data for the tables over traces.
function tasks.trace(pipeline, entry)
  local base = report_base(pipeline, entry)
  local with_report = not pipeline.without.reports
  return { name = base:sub(#pipeline.analysis + 2):gsub("/", "__"), entry = entry, title = base,
    is_quick = entry.is_digest, files = with_report and saved(pipeline, base) or {},
    stamp = stamps.of({ entry.is_digest and entry.digest or entry.path }, pipeline.options_text),
    run = function()
      local source, digest_notes = trace_source.open(entry, { workers = pipeline.threads_each }, with_report)
      local notes = with_report and write_report(pipeline, source.rank, entry, base) or {}
      return pack.pack { info = source:info(), collectives = rank_sheets.of(source),
        variance = variance.of(source, { top_k = pipeline.top_k }),
        warning = rank_report.warning(entry.path, notes), digest_notes = digest_notes }
    end }
end

-- One trace of all ranks, for a viewer.
function tasks.merge(pipeline, configuration)
  local path = ("%s/merged_traces/%s"):format(pipeline.out, merging.file_name(configuration, pipeline.gzip))
  return { name = path:match("[^/]*$"), files = { path }, title = path, configuration = configuration,
    stamp = stamps.of(sequences.field(configuration.files, "path"), "merge"),
    run = function()
      fail.unless(file.make_folder(folder_of(path)))
      local merged = merging.must_merge(path, configuration,
        { gzip = pipeline.gzip, jobs = pipeline.threads_each })
      return pack.pack { notes = merged.notes }
    end }
end

local function stamp_of_all(list, ...)
  local parts = { ... }
  for i, task in ipairs(list) do
    parts[#parts + 1] = ("%d %s %s"):format(i, task.stamp, task.answer and "done" or "failed")
  end
  return stamps.of({}, table.concat(parts, "\0"))
end

function tasks.collectives(pipeline, configuration, answers, traces)
  local base = configuration_report.base(pipeline.analysis, configuration)
  local function files(kept) return pack.unpack(kept).count > 0 and saved(pipeline, base) or {} end
  return { name = base:sub(#pipeline.analysis + 2):gsub("/", "__"), files = files, title = base,
    configuration = configuration, stamp = stamp_of_all(traces, "collectives", pipeline.forms,
      pipeline.gpus_per_node or ""),
    run = function()
      local list, notes = configuration_report.sheets(configuration, answers,
        pipeline.gpus_per_node)
      if #list > 0 then save(pipeline, list, base) else remove(pipeline, base) end
      local summary = sequences.named(list, configuration_report.SUMMARY)
      for i, note in ipairs(notes) do notes[i] = ("%s: %s"):format(configuration.folder, note) end
      if #list == 0 and configuration_report.is_read(configuration, answers) then
        notes[#notes + 1] = configuration.folder .. ": no collectives, so no report of them"
      end
      return pack.pack { notes = notes, summary = summary, count = #list }
    end }
end

local function remove_all(paths)
  for _, path in ipairs(paths) do os.remove(path) end
end

-- The tables of GEMMs. If no trace has a GEMM, there are none, and those of an earlier run are removed.
function tasks.gemm(pipeline, found, traces)
  local out, has_rows = {}, sequences.any(found, function(one) return #one.value.picked > 0 end)
  for _, kind in ipairs { "variance", "timestamps", "overlap" } do
    local sheet = variance.sheet(kind, found, pipeline.top_k)
    local files = gemm_command.paths(pipeline.analysis, sheet, pipeline)
    if has_rows then
      out[#out + 1] = { name = sheet.name, files = files, title = files[1],
        stamp = stamp_of_all(traces, kind), run = function()
          gemm_command.save(pipeline.analysis, sheet, pipeline)
          return ""
        end }
    else
      remove_all(files)
    end
  end
  return out
end

-- The rows in the pictures; none if threads, channels or ranks are unknown.
local function plot_rows(found)
  local rows = {}
  for _, trace in ipairs(found) do
    local entry = trace.entry
    for _, one in ipairs(trace.value.picked) do
      if entry.threads and entry.channels then
        rows[#rows + 1] = { threads = entry.threads, channel = entry.channels, rank = entry.rank,
          time_diff_us = one.most_us - one.least_us }
      end
    end
  end
  return rows
end

-- The pictures of the tables of GEMMs, likewise: nil without rows.
function tasks.plots(pipeline, found, traces)
  local rows, folder, files = plot_rows(found), pipeline.analysis .. "/plots", {}
  for i, picture in ipairs(variance_plots.list) do files[i] = ("%s/%s.png"):format(folder, picture.name) end
  if #rows == 0 then
    remove_all(files)
    return nil
  end
  return { name = "plots", files = files, stamp = stamp_of_all(traces, "plots"), title = folder,
    run = function()
      variance_plots.draw(rows, folder)
      return ""
    end }
end

-- The summaries of all configurations side by side.
function tasks.across(pipeline, made_tasks)
  local made = sequences.map(made_tasks, function(task)
    local summary = task.answer and pack.unpack(task.answer).summary
    return summary and { configuration = task.configuration, sheets = { summary } } or nil
  end)
  local sheet, base = configuration_report.across(made), configuration_report.across_base(pipeline.analysis)
  if not sheet then return nil end
  return { name = "collectives_across_configurations", files = saved(pipeline, base), title = base,
    stamp = stamp_of_all(made_tasks, pipeline.forms), run = function()
      save(pipeline, { sheet }, base)
      return ""
    end }
end

-- Reports side by side over thread and over channel counts, made from existing CSVs. `made_tasks`: the tasks
-- that wrote them.
function tasks.comparisons(pipeline, made_tasks)
  local found, sweep = pcall(sources.find, pipeline.analysis)
  if not found and not fail.is_failure(sweep) then error(sweep, 0) end
  if not found or sweep.kind ~= "sweep" then return {} end -- no threads and channels to compare over
  local writer = {}
  for _, task in ipairs(made_tasks) do writer[task.title .. "_csvs"] = task end
  local function over(field) return report_pairs.over(sweep, field) end
  return sequences.map(sequences.join({ "threads", "channels" }, over), function(comparison)
    local base = ("%s/comparisons/%s"):format(pipeline.analysis, comparison.name)
    local made_from = sequences.map(comparison.reports, function(report)
      return writer[report.path] or { stamp = stamps.of({ report.path }), answer = "" }
    end)
    return { name = comparison.name, files = saved(pipeline, base), title = base,
      stamp = stamp_of_all(made_from, pipeline.forms, comparison.name), run = function()
        save(pipeline, report_pairs.sheets(comparison), base)
        return ""
      end }
  end)
end

-- Raises if an earlier run at `path` is this run's output.
function tasks.refuse_own(pipeline, path, configurations)
  local entries = sequences.join(sequences.field(configurations, "files"))
  against.refuse_own(path, pipeline.analysis, sequences.map(entries, function(entry)
    return report_base(pipeline, entry):sub(#pipeline.analysis + 2)
  end))
end

-- The reports beside those of an earlier run at `path`: a task for each that has one, with `trace`, the task
-- of its report. Raises if no report has one.
function tasks.against(pipeline, path, traces)
  local made = sequences.filter(traces, function(task) return task.answer end)
  local function name_of_report(task) return task.title:sub(#pipeline.analysis + 2) end
  local earlier = against.find(path, sequences.map(made, name_of_report))
  return sequences.map(made, function(task)
    local name = name_of_report(task)
    if not earlier[name] then return nil end
    local base = ("%s/comparisons/%s_against"):format(pipeline.analysis, name:gsub("individual_reports/", "")
      :gsub("/", "_"))
    return { name = base:match("[^/]*$"), files = saved(pipeline, base), title = base, trace = task,
      stamp = stamp_of_all({ task }, stamps.of(against.inputs(earlier[name]), path), pipeline.forms),
      run = function()
        fail.unless(file.make_folder(folder_of(base)))
        against.write(task.title .. "_csvs", earlier[name], path, base, pipeline,
          sequences.merged(pipeline.report_options, { rank = task.entry.rank }))
        return ""
      end }
  end)
end

-- The number of tasks of each step, in order, as far as it is known before traces are read: for traces, for
-- the results of each trace once, for comparisons, for the page.
function tasks.expected(pipeline, configurations)
  local without, entries = pipeline.without, sequences.join(sequences.field(configurations, "files"))
  local function of(step, count) return without[step] and 0 or count end
  local function is_placed(one) return one.threads and one.channels end
  local placed = { reports = sequences.filter(entries, is_placed),
    collectives = sequences.filter(without.collectives and {} or configurations, is_placed) }
  local compared = sequences.join({ "threads", "channels" }, function(field)
    return report_pairs.over(placed, field)
  end)
  return { #entries + of("merge", #configurations),
    of("plots", 1) + of("collectives", #configurations) + of("variance", 3),
    of("comparisons", 1 + #compared) + (pipeline.against and #entries or 0), of("page", 1) }
end

-- The folders of the products.
function tasks.folders(pipeline, configurations)
  local analysis = pipeline.analysis
  local folders = { analysis, analysis .. "/plots", analysis .. "/comparisons", pipeline.stamps.folder,
    pipeline.out .. "/merged_traces" }
  for _, configuration in ipairs(configurations) do
    ordering.add_new(folders, { folder_of(configuration_report.base(analysis, configuration)),
      folder_of(report_base(pipeline, configuration.files[1])) })
  end
  return folders
end

return tasks
