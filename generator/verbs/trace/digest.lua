-- gentables trace digest: a small file for each trace, with the data that the commands over ranks need. They
-- read it in place of the trace.
local digest_making = require "trace.digests.digest_making"
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local file = require "core.file"
local job = require "trace.runs.job"
local progress = require "system.progress"
local sequences = require "base.sequences"

-- "2/8" -> { index = 2, count = 8 }; nil stays nil.
local function part_of(text)
  if not text then return nil end
  local index, count = text:match("^(%d+)/(%d+)$")
  index, count = math.tointeger(tonumber(index)), math.tointeger(tonumber(count))
  if not index or index >= count then
    fail.input("--part: %s is not I/N with I from 0 to N - 1; valid: for example 0/8", text)
  end
  return { index = index, count = count }
end

-- The traces of all configurations. Several traces of one rank are no problem here. Digests of traces that
-- are gone stay as they are.
local function entries_of(work)
  for _, configuration in ipairs(work.configurations) do
    if #configuration.files == 0 then work:fail(configuration.problem, 2) end
  end
  local entries = sequences.join(sequences.field(work.configurations, "files"))
  local traces = sequences.filter(entries, function(entry) return not entry.is_digest end)
  if #traces == 0 then fail.input("%s: is a digest; trace digest takes traces", entries[1].digest) end
  return traces
end

-- Makes the folder of --out; raises if there cannot be one.
local function make_folder(out)
  local made, message = file.make_folder(out)
  if not made then fail.input("%s; give another --out", message) end
end

local function run(args)
  args.csv = true -- writes no sheets
  local part = part_of(args.part)
  local work = job.new(args)
  local out = args.out and (args.out:gsub("(.)/+$", "%1"))
  local entries = entries_of(work)
  if out then make_folder(out) end
  work.bar = progress.new(0)
  local made, kept = digest_making.make(entries, { out = out, part = part, verify = args.verify,
    fresh = args.fresh, jobs = work.jobs, progress = work.bar,
    failed = function(message, code) work:fail(message, code) end })
  work.bar:clear()
  work.bar = nil
  work.done = made + kept
  if work.done > 0 then
    local place = out or "digests beside the traces"
    print(("written   %s: %d made, %d already present"):format(place, made, kept))
  end
  return work:finish()
end

return {
  summary = "A small digest of each trace; the commands over ranks read it in place of the trace.",
  positional = job.positional,
  options = job.options({
    { name = "out", value = "DIR",
      help = "folder of the digests, in the traces' folders of threads, channels and ranks (default: beside "
        .. "the traces)" },
    { name = "part", value = "I/N",
      help = "of N processes that share the traces this is number I, from 0: 3/8" },
    { name = "verify", help = "compare the contents of traces that have a digest, not only size and times" },
    { name = "fresh", help = "make everything again, existing digests too" },
  }),
  example = example_of("trace digest {SWEEP} --out digests\n"
    .. "  gentables trace collectives digests --out collectives"),
  run = run,
}
