-- The common part of commands over ranks and configurations: their options, the selection of traces, reading
-- in parallel, and the final message. If a trace or a configuration fails, it is reported, and the others
-- continue.
local per_trace = require "trace.runs.per_trace"
local fail = require "base.fail"
local collective = require "profile.collective"
local gpus = require "lists.gpus"
local json = require "codec.json"
local opening = require "trace.analysis.opening"
local run_folder = require "trace.runs.run_folder"
local progress = require "system.progress"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"
local trace_source = require "trace.runs.trace_source"

local job = {}
job.__index = job

job.positional = { name = "PATH...", min = 0, max = math.huge,
  help = "a sweep, one configuration's folder, or traces with the rank in their names" }

local NUMBERS = "^%d[%d,%-]*$"

-- The options that select parts of traces.
job.steps = {
  { name = "steps", value = "N", list = true, pattern = NUMBERS,
    help = "only these steps of torch's profiler (ProfilerStep#N): 3-5; with --annotation these of its"
      .. " occurrences, from 0" },
  { name = "annotation", value = "NAME", many = true,
    help = "only the work within annotations of this name; * stands for any characters" },
}

-- The option that selects the peaks of a GPU, of commands with rooflines.
job.gpu = { name = "gpu", value = "NAME",
  help = "GPU with the peaks of the roofline, such as H100 (default: that of the trace)" }

-- The option of commands that can print their sheets in place of writing them.
job.json = { name = "json", without = { "out", "csv", "xlsx", "formats" },
  help = "print the sheets as JSON, and write no files" }

local shared = {
  { name = "threads", value = "N", list = true, pattern = NUMBERS,
    help = "only these thread counts: 256 512" },
  { name = "channels", value = "N", list = true, pattern = NUMBERS, help = "only these channel counts" },
  { name = "ranks", value = "N", list = true, pattern = NUMBERS, help = "only these ranks: 0-3 7" },
  { name = "trace-name", value = "NAME", help = "the file to read in a rank's folder that has several" },
  { name = "base-path", value = "DIR", many = true,
    help = "the same as PATH; tracelens_analysis/ in a sweep means the sweep" },
  { name = "tracelens-path", value = "DIR", many = true, help = "the same" },
  job.steps[1], job.steps[2],
  { name = "capture", value = "DIR",
    help = "traces of the capture of CUDA graphs, of this folder without its subfolders: their ops count for"
      .. " the kernels of replayed graphs" },
  collective.option,
  { name = "jobs", value = "N", type = "whole",
    help = "traces at a time (default: one for each core)" },
}

local forms = {
  { name = "csv", without = { "formats" },
    help = "write CSV; without --csv, --xlsx and --formats both are written" },
  { name = "xlsx", without = { "formats" }, help = "write workbooks" },
  sheets.formats_option(),
}

-- These options, then those that the commands share; with `sheets`, also the choice of CSV and xlsx.
function job.options(own, with_sheets)
  return sequences.join { own, shared, with_sheets and forms or {} }
end

-- The paths to read, each once.
local function paths_of(args)
  local given = sequences.join { args, args.base_path or {}, args.tracelens_path or {} }
  local paths = sequences.distinct(sequences.map(given, function(path)
    return (path:gsub("/+tracelens_analysis/*$", ""))
  end))
  if #paths > 0 then return paths end
  fail.input("no trace is given; give a sweep, a configuration's folder or traces")
end

-- Selects the kernels that communicate, the GPU and the parts of all traces that are read from now on, by
-- these options. Returns the parts as a text.
function job.select(args)
  collective.add_kernels(args.collectives)
  gpus.select(args.gpu)
  local steps = run_folder.numbers(args.steps, "steps")
  opening.capture(args.capture, args.stacks, trace_source.has_folder())
  opening.select((steps or args.annotation) and { steps = steps, annotations = args.annotation } or nil)
  return opening.selected()
end

-- The selected parts of all traces, and the captured ones, in words for a reader.
job.selected = opening.words

-- The folder of --out; with --json "", because nothing is written. Raises without either, or with both.
function job.out_of(args, command)
  if args.json and args.out then fail.input("--json prints, and --out writes files; give one of them") end
  if args.json then return "" end
  if not args.out then
    fail.input("%s needs --out DIR, or --json; see gentables %s --help", command, command)
  end
  return args.out
end

-- args (of the command line) -> the job. Raises if there is nothing to read.
function job.new(args)
  if not args.json then sheets.choose(args) end
  local selection = job.select(args)
  local found = run_folder.select(run_folder.find(paths_of(args), { trace_name = args.trace_name }), {
    threads = run_folder.numbers(args.threads, "threads"),
    channels = run_folder.numbers(args.channels, "channels"),
    ranks = run_folder.numbers(args.ranks, "ranks") })
  trace_source.prepare()
  return setmetatable({ configurations = found.configurations, sweep = found.sweep,
    jobs = args.jobs, csv = args.csv, xlsx = args.xlsx, sqlite = args.sqlite, answer = args.json and {},
    done = 0, selection = selection, capture = args.capture, failures = {}, printed = {} }, job)
end

-- Prints a line on stderr, once.
function job:print_once(text)
  if self.printed[text] then return end
  self.printed[text] = true
  if self.bar then self.bar:print("gentables: " .. text) else fail.note(text) end
end

-- A failure that does not end the job.
function job:fail(message, code)
  table.insert(self.failures, { message = message, code = code or 1 })
  self:print_once(message)
end

-- Reports an incomplete part of a configuration.
function job:note(configuration, note)
  self:print_once(("%s: %s"):format(configuration.folder, note))
end

-- Raises for two configurations of one name: their files would overwrite each other.
local function check_names(configurations)
  local seen = {}
  for _, configuration in ipairs(configurations) do
    local name = ("%s %s"):format(configuration.threads, configuration.channels)
    if seen[name] then
      fail.input("%s and %s: two configurations of one name; give one sweep at a time",
        seen[name].folder, configuration.folder)
    end
    seen[name] = configuration
  end
end

-- The configurations that can be processed; the others are reported.
function job:usable()
  check_names(self.configurations)
  local out = {}
  for _, configuration in ipairs(self.configurations) do
    if configuration.problem then
      self:fail(configuration.problem, 2)
    else
      out[#out + 1] = configuration
    end
  end
  return out
end

-- Prints what --capture leaves open in traces with these infos, by flaw.
function job:note_captures(infos)
  local counts, names = {}, {}
  for _, info in ipairs(infos) do
    for _, flaw in ipairs(info.flaws) do
      if flaw.name:find("graph", 1, true) then
        if not counts[flaw.name] then names[#names + 1] = flaw.name end
        counts[flaw.name] = (counts[flaw.name] or 0) + math.max(flaw.count, 1)
      end
    end
  end
  for _, name in ipairs(names) do
    local unit = name:find("^no ") and "trace" or "kernel"
    self:print_once(("--capture: %s: %s"):format(name, quantities.counted(counts[name], unit)))
  end
end

-- Calls fn(source, entry) for every trace of these configurations (trace/runs/trace_source.lua). Returns
-- { [entry] = its result }; failures are reported and have no entry: their message is entry.failure. options:
-- needs_trace, as of per_trace.map; is_beginning: the measurement that follows is the work that the bar
-- shows.
function job:read(list, fn, options)
  options = options or {}
  local entries, answers = sequences.join(sequences.field(list, "files")), {}
  self.bar = progress.new(not options.is_beginning and #entries or nil)
  local results = per_trace.map(entries, function(source, entry)
    return { value = fn(source, entry), info = self.capture and source:info() }
  end, { jobs = self.jobs, progress = self.bar, title = "traces", needs_trace = options.needs_trace })
  self.bar:clear()
  self.bar = nil
  local infos = {}
  for i, entry in ipairs(entries) do
    if results[i].ok then
      answers[entry] = results[i].value.value
      infos[#infos + 1] = results[i].value.info or nil
    else
      entry.failure = results[i].message
      self:fail(entry.failure, results[i].code)
    end
  end
  self:note_captures(infos)
  return answers
end

-- Prints the paths of `count` sheets: BASE.xlsx if `written.xlsx` is true, BASE.sqlite if `written.sqlite`
-- is, and the folder BASE_csvs if `written.csv` is.
function job.print_written(base, written, count)
  if written.xlsx then print("written   " .. base .. ".xlsx") end
  if written.sqlite then
    print(("written   %s.sqlite: %s"):format(base, quantities.counted(count, "table")))
  end
  if written.csv then print(("written   %s_csvs/: %s"):format(base, quantities.counted(count, "CSV"))) end
end

-- Writes sheets as BASE.xlsx, as BASE.sqlite and as CSVs in the folder BASE_csvs, by the options; with --json
-- keeps them for `finish`, with BASE as their name.
function job:save(list, base)
  self.done = self.done + 1
  if self.answer then
    self.answer[self.done] = { name = base:gsub("^/+", ""), sheets = sheets.for_json(list) }
    return
  end
  sheets.save(list, sheets.paths(base, self))
  job.print_written(base, self, #list)
end

-- The exit code; raises if nothing was written. With --json prints the sheets.
function job:finish()
  if self.answer and self.done > 0 then print(json.encode(json.array(self.answer))) end
  if #self.failures == 0 then return 0 end
  if self.done == 0 then fail.with(self.failures[1].code, "nothing is written") end
  self:print_once(("%d failed, the others are written"):format(#self.failures))
  return 1
end

return job
