-- The common part of trace variance, timestamps and overlap: the same traces and GEMMs, and a CSV of each.
local file = require "core.file"
local fail = require "base.fail"
local job = require "trace.runs.job"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"
local variance = require "trace.gemm.variance"

local gemm_command = {}

local TOP_K = 5

gemm_command.no_gemm = "no GEMM in these traces: no op of PyTorch or of a supported library with shapes "
  .. "and GPU events; profile with record_shapes"

-- The number of --top-k.
function gemm_command.top_k_of(args) return args.top_k or TOP_K end

gemm_command.options = {
  { name = "out", value = "DIR", without = { "json" },
    help = "folder of the CSV (default: that of --input-csv, else tracelens_analysis/ in the sweep)" },
  { name = "top-k", value = "K", type = "whole", help = "GEMMs of each trace (default: 5)" },
  sheets.formats_option { "csv", "sqlite" }, job.json,
}

-- The files of a sheet: DIR/NAME.csv and DIR/NAME.sqlite, those of which forms.csv and forms.sqlite are true.
function gemm_command.paths(folder, sheet, forms)
  local csv = folder .. "/" .. sheets.csv_name(sheet)
  local out = forms.csv and { csv } or {}
  if forms.sqlite then out[#out + 1] = csv:gsub("%.csv$", ".sqlite") end
  return out
end

-- Writes these files.
function gemm_command.save(folder, sheet, forms)
  for _, path in ipairs(gemm_command.paths(folder, sheet, forms)) do
    if path:find("%.csv$") then
      fail.unless_done(file.write(path, sheets.csv(sheet)))
    else
      fail.unless_done(sheets.write_sqlite(path, { sheet }))
    end
  end
end

-- Writes these files, and prints their paths.
function gemm_command.write(folder, sheet, forms)
  fail.unless_done(file.make_folder(folder))
  gemm_command.save(folder, sheet, forms)
  for _, path in ipairs(gemm_command.paths(folder, sheet, forms)) do
    print(("written   %s: %d rows"):format(path, #sheet.rows))
  end
end

-- The answers of a job's traces, in order: { { entry, value }... }.
function gemm_command.found(configurations, answers)
  local found = {}
  for _, configuration in ipairs(configurations) do
    for i, entry in ipairs(configuration.files) do
      if answers[entry] then
        entry.rank = entry.rank or answers[entry].rank or i - 1
        found[#found + 1] = { entry = entry, value = answers[entry] }
      end
    end
  end
  return found
end

local OF_INSTANCES = {
  { name = "all", help = "a row for every instance, not only shortest and longest" },
  { name = "input-csv", value = "CSV",
    help = "only the GEMMs of this CSV of trace variance, and its columns" },
}

-- The job's answers with these options of variance.of.
local function read(work, configurations, args, top_k, input)
  local answers = work:read(configurations, function(source, entry)
    local answer = variance.of(source, { top_k = top_k, all = args.all, input = input,
      indices = input and input.of(entry) })
    answer.rank = source:info().rank
    return answer
  end)
  return gemm_command.found(configurations, answers)
end

-- The folder of the CSV. `sweep`: the folder of the sweep that is read, or nil.
local function folder_of(kind, args, sweep)
  if args.json then return job.out_of(args) end
  local out = args.out or args.input_csv and (args.input_csv:match("^(.*)/[^/]*$") or ".")
    or sweep and sweep .. "/tracelens_analysis"
  if out then return out end
  fail.input("trace %s needs --out DIR, unless it reads a sweep; see gentables trace %s --help", kind, kind)
end

local function run(kind, args)
  args.formats = args.formats or { "csv" }
  local work, top_k = job.new(args), gemm_command.top_k_of(args)
  local out = folder_of(kind, args, work.sweep)
  local input = args.input_csv and require("trace.gemm.input_csv").read(args.input_csv)
  if input and (args.all or args.top_k) then
    fail.input("--input-csv, --all and --top-k each select the GEMMs; give one of them")
  end
  local found = read(work, work:usable(), args, top_k, input)
  if #found == 0 then return work:finish() end
  local sheet, missing
  if input then
    sheet, missing = variance.extended(kind, input, found)
    if missing > 0 then
      work:fail(("%s: %d rows match no GEMM in these traces; their new columns are empty"):format(input.path,
        missing))
    end
  else
    sheet = variance.sheet(kind, found, top_k, args.all)
    if #sheet.rows == 0 then fail.work(gemm_command.no_gemm) end
  end
  if work.answer then
    work:save({ sheet }, sheet.name)
  else
    gemm_command.write(out, sheet, work)
    work.done = 1
  end
  return work:finish()
end

-- The command of a kind of variance.sheet.
function gemm_command.of(kind, summary, example)
  local own = sequences.join { gemm_command.options, kind ~= "variance" and OF_INSTANCES or {} }
  return { summary = summary, positional = job.positional, options = job.options(own), example = example,
    run = function(args) return run(kind, args) end }
end

return gemm_command
