-- gentables import: other programs' measurements to rows, and their tables to table.csv. The content of a
-- file determines its reader; reading/list.lua lists them.
local fail = require "base.fail"
local file = require "core.file"
local foreign = require "reading.foreign"
local help = require "reference.help"
local regroup = require "rows.regroup"
local lists = require "lists.lists"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local readers = require "reading.list"
local sequences = require "base.sequences"
local source = require "reading.source"
local sorted_keys = require("base.ordering").sorted_keys
local texts = require "base.text"

local import = {}

import.summary = "Reads other programs' measurements as rows, and other programs' tables as table.csv."
import.positional = { name = "FILE...", min = 1, max = math.huge,
  help = "files of one kind; their content determines the reader" }
import.options = {
  { name = "out", value = "PATH", required = true,
    help = "FILE.csv; or a folder for benchmark.tp{N}.{arch}.csv, or {arch}/table.csv" },
  { name = "from", value = "NAME", values = readers.names(),
    help = "reader, one of\n" .. help.names(readers.list) },
  { name = "arch", value = "ARCH",
    help = "arch, such as sm90; of a file with several tables, the one to read" },
  { name = "tp", value = "N,N...", type = "whole", most = 65535, comma = true,
    help = "number of ranks, for files without it" },
  { name = "dtype", value = "NAME", values = lists.names("dtypes"),
    help = "data type, for files without it (default: bfloat16)" },
  { name = "hidden-size", value = "N", type = "size",
    help = "elements of a token, for files with bytes alone; rows without it have a size only" },
  { name = "strategy", value = "NAME",
    help = "strategy of the times (default: nccl-tests NCCL, osu MPI)" },
  { name = "era", value = "NAME",
    help = "enum of a header's numbers: today, or oneshot1, in which ONESHOT is 1" },
  { name = "calls", value = "N", type = "whole", help = "trtllm-printed: number of calls in a timed loop" },
  { name = "nodes", value = "N", type = "whole",
    help = "the nodes of rows in files without them; NCCL's files: read only entries of these" },
  { name = "in-place", help = "nccl-tests: read the in-place times" },
}
import.example = "gentables import tests/readers/inputs/nccl_tests.txt --arch sm90 --out imported/"

-- ---- the command line -------------------------------------------------------------------------

local function options_of(args)
  if args.tp then table.sort(args.tp) end
  return { tp = args.tp, dtype = args.dtype, hidden_size = args.hidden_size, strategy = args.strategy,
    arch = regroup.check_arch(args.arch), era = args.era, calls = args.calls, nodes = args.nodes,
    in_place = args.in_place }
end

local function head_of(path)
  local head = fail.unless(file.read(path, readers.HEAD_BYTES))
  return head ~= "" and head or fail.input("%s: is empty", path)
end

local function reader_of(path, name)
  if name then
    return readers.find(name)
      or fail.input("--from %s: no such reader%s; valid readers: %s", name,
        texts.did_you_mean(name, readers.names()), table.concat(readers.names(), ", "))
  end
  return readers.of(head_of(path))
    or fail.input("%s: is of no known kind; --from NAME chooses a reader: %s", path,
      table.concat(readers.names(), ", "))
end

-- ---- reading ----------------------------------------------------------------------------------

-- Gives the records of a file without nodes those of --nodes.
local function place(of_file, result, nodes)
  for _, list in ipairs { result.rows or {}, result.no_time or {} } do
    for _, record in ipairs(list) do
      local placement = record.nodes and {} or of_file:placement(record.line, record.world_size, nodes)
      for name, value in pairs(placement) do record[name] = value end
    end
  end
end

-- The result of a reader for a file. Prints what it left out.
local function read(path, reader, options)
  local text = fail.unless(file.read(path))
  local of_file = source.new(path, text, options)
  local result = foreign.read(reader, of_file)
  for _, reason in ipairs(sorted_keys(of_file.left_out)) do
    fail.note("%s: left out, %s: %d", path, reason, of_file.left_out[reason])
  end
  if options.nodes then place(of_file, result, options.nodes) end
  return result
end

-- ---- rows -------------------------------------------------------------------------------------

local no_time_fields = { "dtype", "op", "mode", "fusion", "hidden_size", "num_tokens", "strategy", "reason" }

-- A record without a time, as provenance has it: one of a size only is one token.
local function entry_of(record)
  local entry = sequences.pick(record, no_time_fields)
  if not entry.num_tokens then
    entry.num_tokens, entry.hidden_size = 1, record.size // lists.find("dtypes", record.dtype).bytes
  end
  return entry
end

-- The provenance of imported rows. Facts that the files lack, such as the CPU, are absent. `devices`: those
-- of each number of ranks, if the files have them.
local function record_of(of_size, arch, facts, no_time, devices)
  local placement
  local entries = sequences.map(no_time, function(entry)
    local is_its_own = entry.world_size == of_size.world_size and (entry.nodes or 1) == of_size.nodes
    return is_its_own and entry_of(entry) or nil
  end)
  for _, record in ipairs(of_size.records or {}) do
    placement = placement or record.placement
    if placement ~= record.placement then placement = "unknown" end
  end
  return { world_size = of_size.world_size, nodes = of_size.nodes > 1 and of_size.nodes or nil, arch = arch,
    placement = placement or "unknown",
    machine = { gpu = facts.machine }, bench = { imported = facts.from, facts = facts.bench },
    fingerprint = provenance.imported_fingerprint({ gpu = facts.machine },
      { imported = facts.from, facts = facts.bench }), no_time = entries,
    devices = devices and devices[of_size.world_size] }
end

-- The facts of one file, without the machine.
local function bench_facts(result)
  local facts = {}
  for name, value in pairs(result.facts) do
    if name ~= "machine" then facts[name] = value end
  end
  return next(facts) and facts or nil
end

-- Reads all files as records, each with its file and line.
local function read_records(args, reader, options)
  local records, no_time, facts, devices = {}, {}, { from = reader.name }, {}
  for i, path in ipairs(args) do
    local result = read(path, reader, options)
    local bench = bench_facts(result)
    local is_same = provenance.same(facts.bench, bench) and facts.machine == result.facts.machine
    if i > 1 and not is_same then
      fail.input("%s: of another machine, version or run than %s; import each, then gentables merge " ..
        "--across-machines", path, args[1])
    end
    facts.bench, facts.machine = bench, result.facts.machine
    for _, record in ipairs(result.rows) do
      record.where = record.line and ("%s:%d"):format(path, record.line) or path
      records[#records + 1] = record
    end
    table.move(result.no_time, 1, #result.no_time, #no_time + 1, no_time)
    if result.devices then devices[result.world_size] = result.devices end
  end
  if #records == 0 then fail.input("%s: has no row with a time", args[1]) end
  return regroup.records(records), facts, no_time, devices
end

-- The strategies of the rows in a file, as { NAME = true... }; none if it is missing or cannot be read.
local function strategies_in(path)
  local old = file.exists(path) and rows.read { path }
  return old and old:strategies() or {}
end

-- Notes the strategies that a file had, and has no longer: its rows were replaced as a whole.
local function note_lost(path, had)
  local has = next(had) and strategies_in(path)
  local lost = sequences.filter(sorted_keys(had), function(name) return not has[name] end)
  if #lost > 0 then
    fail.note("%s: its rows of %s are replaced; import into another folder, and gentables merge, keep both",
      path, table.concat(lost, ", "))
  end
end

local function import_rows(args, reader, options)
  local groups, facts, no_time, devices
  if reader.file == "benchmark_csv" then
    groups, facts, no_time = regroup.files(args), { from = reader.name }, {}
  else
    groups, facts, no_time, devices = read_records(args, reader, options)
  end
  local paths, arch = regroup.paths(groups, args.out, options.arch)
  regroup.make_folder(args.out)
  local _ <close> = regroup.lock(args.out)
  for i, of_size in ipairs(groups) do
    local had = strategies_in(paths[i])
    regroup.write(paths[i], of_size, record_of(of_size, arch, facts, no_time, devices))
    note_lost(paths[i], had)
  end
end

-- ---- tables -----------------------------------------------------------------------------------

-- The tables to write: with --arch the one of that arch, or the only one, which becomes that arch's.
local function choose(tables, options, path)
  if not options.arch then
    if not tables[1].arch then fail.input("%s: has no arch; --arch ARCH is required", path) end
    return tables
  end
  if #tables == 1 and not tables[1].arch then
    tables[1].arch = options.arch
    return tables
  end
  local found = sequences.find(tables, function(one) return one.arch == options.arch end)
  if found then return { found } end
  if #tables == 1 and tables[1].arch == "host" and lists.arch(options.arch).backend == "host" then
    tables[1].arch = options.arch
    return tables
  end
  fail.input("%s: has no table of %s; it has %s", path, options.arch,
    table.concat(sequences.field(tables, "arch"), ", "))
end

local function import_table(args, reader, options)
  if #args > 1 then fail.input("%s: a table is read from one file at a time", args[2]) end
  local tables = choose(read(args[1], reader, options).tables, options, args[1])
  local is_file = args.out:find("%.csv$") ~= nil
  if is_file and #tables > 1 then
    fail.input("--out %s: there are tables of %s; a folder, or --arch, is required", args.out,
      table.concat(sequences.field(tables, "arch"), ", "))
  end
  for _, one in ipairs(tables) do
    local path = is_file and args.out or ("%s/%s/table.csv"):format(args.out:gsub("(.)/+$", "%1"), one.arch)
    regroup.make_folder(path)
    fail.unless_done(file.write(path, foreign.table_text(one.arch, one.cells)))
    io.stdout:write(("wrote %s: %d cells of %s\n"):format(path, #one.cells, one.arch))
  end
end

-- ---- the verb ---------------------------------------------------------------------------------

function import.run(args)
  local options = options_of(args)
  local reader = reader_of(args[1], args.from)
  for i = 2, #args do
    local other = reader_of(args[i], args.from)
    if other ~= reader then
      fail.input("%s: is %s, and %s is %s; files of one kind are required", args[i], other.name, args[1],
        reader.name)
    end
  end
  local does = reader.gives == "rows" and import_rows or import_table
  return does(args, reader, options)
end

return import
