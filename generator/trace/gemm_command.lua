-- What trace variance, timestamps and overlap have in common: the same traces and GEMMs, and a CSV of each.
local file = require "core.file"
local fail = require "fail"
local job = require "trace.job"
local sheets = require "sheets"
local variance = require "trace.gemm_variance"

local gemm_command = {}

gemm_command.top_k = 5
gemm_command.no_gemm = "no GEMM in these traces: no op of PyTorch or of the libraries known here with shapes "
  .. "and GPU events; profiling with record_shapes would be right"

-- The number that --top-k says.
function gemm_command.top_k_of(args) return job.positive(args.top_k, "top-k") or gemm_command.top_k end

gemm_command.options = {
  { name = "out", value = "DIR", help = "where the CSV goes", required = true },
  { name = "top-k", value = "K", help = "so many GEMMs of each trace (default: 5)" },
}

-- Writes a sheet as DIR/NAME.csv and says so.
function gemm_command.write(folder, sheet)
  local made, message = file.make_folder(folder)
  local path = folder .. "/" .. sheets.csv_name(sheet)
  if made then made, message = file.write(path, sheets.csv(sheet)) end
  if not made then fail.work("%s", message) end
  print(("written   %s: %d rows"):format(path, #sheet.rows))
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

-- The command of a kind of variance.sheet.
function gemm_command.of(kind, summary, example)
  local own = table.move(gemm_command.options, 1, #gemm_command.options, 1, {})
  if kind ~= "variance" then
    own[#own + 1] = { name = "all", help = "a row for every instance, not only shortest and longest" }
  end
  local function run(args)
    local work, top_k = job.new(args), gemm_command.top_k_of(args)
    local usable = work:usable()
    local answers = work:read(usable, function(t)
      local answer = variance.of(t, { top_k = top_k, all = args.all })
      answer.rank = t:info().rank
      return answer
    end)
    local found = gemm_command.found(usable, answers)
    local sheet = variance.sheet(kind, found, top_k, args.all)
    if #sheet.rows == 0 and #found > 0 then
      fail.work(gemm_command.no_gemm)
    end
    if #found > 0 then
      gemm_command.write(args.out, sheet)
      work.done = 1
    end
    return work:finish()
  end
  return { summary = summary, positional = job.positional, options = job.options(own), example = example,
    run = run }
end

return gemm_command
