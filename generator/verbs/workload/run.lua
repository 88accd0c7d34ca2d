-- gentables workload run: measures one configuration and prints the results.
local child_process = require "system.child_process"
local common_options = require "workload.common_options"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local options = require "base.options"
local progress = require "system.progress"
local configuration = require "workload.configuration"
local findings = require "workload.findings"

local function one(list, option)
  if #list == 1 then return list[1] end
  fail.input("--%s: one configuration is run; gentables workload sweep takes several", option)
end

local ROWS = {
  { "gemms", "GEMMs alone" }, { "serial", "each collective waited for" }, { "overlapped", "overlapped" },
  { "traced", "overlapped, traced" },
}

local function print_gpus(result, unit, length)
  print(("\n%-5s %12s %12s %14s"):format("rank", ("GEMMs (%s)"):format(unit), "alone", "communication"))
  for i, rank in ipairs(result.ranks) do
    print(("%-5d %12.3f %12.3f %14.3f"):format(i - 1, rank.gemm_us / length, rank.gemm_alone_us / length,
      rank.communication_us / length))
  end
end

local function print_table(result)
  local unit, length = findings.unit_of { result }
  print(("%-28s %10s %10s %10s %10s"):format(("step (%s)"):format(unit), "median", "low", "high", "min"))
  local function cell(us) return us and ("%.3f"):format(us / length) or "-" end
  for _, row in ipairs(ROWS) do
    local time = result.times[row[1]]
    local known = findings.has_interval(time)
    print(("%-28s %10s %10s %10s %10s"):format(row[2], cell(time.median), cell(known and time.low),
      cell(known and time.high), cell(time.min)))
  end
  if result.backend == "cuda" then return print_gpus(result, unit, length) end
  print(("\n%-5s %12s %12s %12s %14s %14s %12s"):format("rank", ("GEMMs (%s)"):format(unit), "alone",
    "on a core", "communication", "on a core", "waiting"))
  for i, rank in ipairs(result.ranks) do
    print(("%-5d %12.3f %12.3f %12.3f %14.3f %14.3f %12.3f"):format(i - 1, rank.gemm_us / length,
      rank.gemm_alone_us / length, rank.gemm_cpu_us / length, rank.communication_us / length,
      rank.communication_cpu_us / length, rank.await_us / length))
  end
end

local function print_words(entry, ranks)
  print()
  for _, text in ipairs { findings.hidden(entry.result), findings.cost(entry.result),
    findings.why({ entry.result }, ranks), findings.tracing(entry.result), findings.used(entry) } do
    print(text)
  end
end

-- Makes the folders of the traces of all ranks.
local function make_folders(trace, ranks)
  local folder = trace and trace:match("^(.*)/[^/]*$")
  for rank = 0, folder and folder ~= "" and ranks - 1 or -1 do
    fail.unless(file.make_folder((folder:gsub("%%r", tostring(rank)))))
  end
end

return {
  summary = "Measures one configuration of a workload: steps of GEMMs alone, serial, overlapped and traced.",
  options = options.with(common_options.options, {
    { name = "channels", short = "c", value = "N",
      help = "slices in flight (default: 2); on GPUs NCCL's channels or our blocks (28)" },
    { name = "threads", short = "t", value = "N",
      help = "communication threads (default: 1); on GPUs those of a block (512)" },
    { name = "trace", value = "FILE", help = "write the traces to this file; %r is replaced by the rank" },
    { name = "json", help = "print the results as JSON" },
  }),
  example = "gentables workload run -f small",
  run = function(args)
    local decided = common_options.settle(args)
    local all_channels, all_threads = common_options.counts(args, "run")
    local channels, threads = one(all_channels, "channels"), one(all_threads, "threads")
    if args.trace and not args.trace:find("%r", 1, true) then
      fail.input("--trace: %s is one file for all ranks; a name with %%r is required", args.trace)
    end
    local job = common_options.read(args)
    make_folders(args.trace, job.ranks)
    if decided then
      local out = args.json and io.stderr or io.stdout -- stdout has only JSON
      out:write(("backend   %s\n\n"):format(decided))
      out:flush() -- the measurement takes long
    end
    local bar = progress.new()
    bar.total = 1
    bar:in_turn()
    bar:show("start")
    local result, failure = configuration.measure(common_options.measurement(job, channels, threads,
      { path = args.trace,
      progress = function(done, of)
        bar:within(done, of, ("%d of %d rounds of steps"):format(done, of))
      end }))
    if result then bar:step() end
    bar:clear()
    if not result then
      child_process.raise_if_interrupted()
      fail.work("%s: %s", job.workload.path, failure.reason)
    end
    result.log = nil
    if args.json then
      io.stdout:write(json.encode(result), "\n")
      return
    end
    print_table(result)
    print_words({ result = result, channels = channels, threads = threads }, job.ranks)
  end,
}
