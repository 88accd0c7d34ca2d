-- The page of trace pipeline, as its last task: all products of the run.
local against = require "trace.compare.against"
local configuration_report = require "trace.collectives.configuration_report"
local file = require "core.file"
local report_overview = require "trace.reports.report_overview"
local sequences = require "base.sequences"
local stamps = require "trace.pipeline.stamps"
local variance_plots = require "trace.gemm.variance_plots"

local pipeline_overview = {}

local function base_name(path) return path:match("([^/]+)/*$") or path end

-- { name, stamp, state } of each task, as one text.
local function state_of(products)
  return table.concat(sequences.map(products, function(task)
    return ("%s %s %s"):format(task.name, task.stamp, task.answer and "done" or "failed")
  end), "\n")
end

local function plots_of(pipeline)
  return sequences.map(variance_plots.list, function(picture)
    local path = ("%s/plots/%s.png"):format(pipeline.analysis, picture.name)
    return file.exists(path) and path or nil
  end)
end

-- The tables of GEMMs for the page; nil unless this run has all of them.
local function variance_of(pipeline, made)
  if #made.tables == 0 or not sequences.all(made.tables, function(task) return task.answer end) then
    return nil
  end
  return { folder = pipeline.analysis, name = ("top%d_gemm_kernels_time_variance"):format(pipeline.top_k),
    plots = made.plots and made.plots.answer and plots_of(pipeline) or {} }
end

-- The traces of a configuration for report_overview.run. `made`: its tasks; `changes`: tasks of --against.
local function traces_of(pipeline, made, answers, changes)
  return sequences.map(made, function(task)
    local change = sequences.find(changes, function(one) return one.trace == task and one.answer end)
    return { entry = task.entry, info = answers[task.entry] and answers[task.entry].info, name = task.title,
      csvs = task.answer and not pipeline.without.reports and task.title .. "_csvs" or nil,
      against = change and against.of_page(pipeline.against, change.title .. "_csvs") or nil }
  end)
end

local function runs_of(pipeline, made)
  local runs = sequences.map(made.configurations, function(configuration)
    local run = report_overview.run(configuration, traces_of(pipeline, made.by_configuration[configuration],
      made.answers, made.changes))
    local collectives = sequences.find(made.collectives, function(task)
      return task.configuration == configuration and task.answer
    end)
    run.collectives = collectives and configuration_report.base(pipeline.analysis, configuration) .. "_csvs"
      or nil
    return run
  end)
  return report_overview.name_all(runs)
end

-- The path of the page.
function pipeline_overview.path(pipeline) return pipeline.analysis .. "/" .. report_overview.NAME end

-- The task. made = { configurations, by_configuration = { [configuration] = tasks of its traces },
-- answers = { [entry] = data }, collectives, changes, tables (of GEMMs) = tasks, plots = a task or nil,
-- products = all tasks of the run }.
function pipeline_overview.task(pipeline, made)
  local path, failures = pipeline_overview.path(pipeline), sequences.field(pipeline.work.failures, "message")
  return { name = "overview", files = { path }, title = path,
    stamp = stamps.of({}, state_of(made.products), table.concat(failures, "\n"), pipeline.forms),
    run = function()
      report_overview.write_page(path, { title = "Trace pipeline: " .. base_name(pipeline.out),
        runs = runs_of(pipeline, made), variance = variance_of(pipeline, made), failures = failures,
        without_reports = pipeline.without.reports,
        folders = { pipeline.analysis, pipeline.out .. "/merged_traces" } })
      return ""
    end }
end

return pipeline_overview
