-- The page that a person opens first: what the traces of a command have in common and where they differ, each
-- figure with the file that it is from. It shows values of files that are written already, and computes none.
--
--   overview_page.write("out/overview.html", { title = "2 traces", runs = { run... },
--     variance = { folder, name, plots } or nil, folders = { folder... }, files = { path... },
--     failures = { text... }, selected = as of opening.words, or nil,
--     roofline = a note on the GPU of the roofline, or nil,
--     without_reports = true: the command made none })
--
-- A run: overview_results.lua. folders, files: what the page lists as its files. Raises if the page cannot be
-- written.
local fail = require "base.fail"
local file = require "core.file"
local overview_answers = require "trace.overview.overview_answers"
local overview_changes = require "trace.overview.overview_changes"
local overview_collectives = require "trace.overview.overview_collectives"
local overview_files = require "trace.overview.overview_files"
local overview_operations = require "trace.overview.overview_operations"
local overview_phases = require "trace.overview.overview_phases"
local overview_results = require "trace.overview.overview_results"
local overview_times = require "trace.overview.overview_times"
local overview_variance = require "trace.overview.overview_variance"
local page = require "pages.page"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local overview_page = {}

local function lead_of(runs, selected)
  local traces = 0
  for _, run in ipairs(runs) do traces = traces + #run.traces end
  local words = quantities.counted(traces, "trace")
  if #runs > 1 then words = ("%s in %s"):format(words, quantities.counted(#runs, "configuration")) end
  return words .. (selected or "") .. ". Each figure is a value of the file that is named below it."
end

-- The page at `path` as text.
function overview_page.render(path, given)
  local results = overview_results.open(path)
  local style = fail.unless(file.read(gentables.home .. "/templates/reports/overview.css"))
  local out = page.new(given.title, { lead = lead_of(given.runs, given.selected), style = style })
  local all = sequences.map(given.runs, function(run)
    return { run = run, lines = results:time_lines(run) }
  end)
  overview_answers.add(out, results, all, given)
  overview_times.add(out, results, all, given.without_reports)
  overview_phases.add(out, results, given.runs)
  overview_changes.add(out, results, given.runs)
  overview_collectives.add(out, results, given.runs)
  overview_operations.add(out, results, given.runs, given.roofline)
  overview_variance.add(out, results, given.variance)
  overview_files.add_incomplete(out, results, given.runs, given.failures or {})
  overview_files.add(out, results, given.folders or {}, given.files or {})
  return out:render()
end

function overview_page.write(path, given)
  fail.unless_done(file.write(path, overview_page.render(path, given)))
end

return overview_page
