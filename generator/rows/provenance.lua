-- The provenance of rows: machine, bench and spec, in a JSON file with the name of the rows file
-- (benchmark.tp{N}.{arch}.json), and a fingerprint. Only rows with equal fingerprints may be in one file.
--
-- The fingerprint covers what influences times: CPU model, cores, caches, GPU, MPI, the network of several
-- nodes, bench, launcher, incumbent, and the spec's limits on samples and time; not host name, system and
-- date, and memory only where the CPU is unknown.
local file = require "core.file"
local json = require "codec.json"
local machines = require "machine.machines"
local rank_placement = require "lists.rank_placement"
local system = require "core.system"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys

local provenance = {}

local SAME_REGIME = 1.6 -- round trips with a smaller ratio are of one regime

local VERSION = 1

-- text -> 16 hex digits
provenance.hash = system.hash

-- Whether two values are equal, as JSON.
function provenance.same(a, b) return json.encode({ a }) == json.encode({ b }) end

-- Whether two round trips of a flag between ranks, in microseconds, are of one regime of a machine; 0:
-- unknown.
function provenance.same_regime(a, b)
  return a == b or a < SAME_REGIME * b and b < SAME_REGIME * a
end

-- ---- fingerprints and the file ----------------------------------------------------------------

-- The fingerprint of machine, bench, limits and launcher. `launcher`: the command in place of mpirun, which
-- binds and places ranks in its own way; nil for mpirun as conversation/launcher.lua starts it. `incumbent`:
-- the text of the header that was named for AUTO, or nil. The limit of messages is not included: it adds or
-- removes cells, but does not change their times.
function provenance.fingerprint(machine, bench, limits, launcher, incumbent)
  return provenance.hash(json.encode({
    machine = machines.identity(machine), bench = bench, launcher = launcher,
    incumbent = incumbent and provenance.hash(incumbent),
    limits = { min_samples = limits.min_samples, max_samples = limits.max_samples, cell_us = limits.cell_us },
  }))
end

-- The field `launch` of a record: hashes of the launcher and of the incumbent of provenance.fingerprint, by
-- which a change of them is found; not their texts, which have paths.
function provenance.of_launch(launcher, incumbent)
  return { launcher = launcher and provenance.hash(launcher) or nil,
    incumbent = incumbent and provenance.hash(incumbent) or nil }
end

-- The field `network` of a record of ranks on several nodes: the interfaces of this one
-- (machine/network.lua), and a hash of the names of all nodes (nil: unknown), by which two sweeps can be
-- compared; never the names themselves.
function provenance.of_network(interfaces, names)
  local sorted = table.move(names or {}, 1, #(names or {}), 1, {})
  table.sort(sorted)
  return { interfaces = json.array(interfaces),
    node_set = names and provenance.hash(table.concat(sorted, "\n")) or nil }
end

-- The same for ranks on nodes of which `slow_nodes` (nil: none) were slow beside others.
function provenance.network_of(network, slow_nodes)
  return { interfaces = network.interfaces, node_set = network.node_set, slow_nodes = slow_nodes }
end

-- Interfaces as words, such as "eth0, 10000 Mbit/s".
function provenance.interface_words(interfaces)
  return sequences.map(interfaces, function(of)
    return of.mbit_per_s and ("%s, %d Mbit/s"):format(of.interface, of.mbit_per_s)
      or of.interface .. ", unknown rate"
  end)
end

-- The machine of ranks on several nodes (machines.over) with this network.
function provenance.machine_over(machine, network)
  local words = provenance.interface_words(network.interfaces)
  return machines.over(machine, words[1] and table.concat(words, "; ") or nil)
end

-- The parts of the fingerprint of a sweep (`job`: { identity, spec, launch }) that have changed since
-- `record`, apart from the machine, as text.
function provenance.changed_parts(record, job)
  local out = {}
  local function compare(what, old, new)
    if old ~= new then
      out[#out + 1] = ("%s (%s, now %s)"):format(what, tostring(old or "none"), tostring(new or "none"))
    end
  end
  for _, name in ipairs { "hash", "compiler", "isa", "protocol" } do
    compare("the bench's " .. name, record.bench[name], job.identity[name])
  end
  local limits = record.spec and record.spec.keys and record.spec.keys.limits
  for _, name in ipairs(limits and { "min_samples", "max_samples", "cell_us" } or {}) do
    compare("the spec's " .. name, limits[name], job.spec.limits[name])
  end
  for _, name in ipairs { "launcher", "incumbent" } do
    if record.launch and record.launch[name] ~= job.launch[name] then out[#out + 1] = "the " .. name end
  end
  -- Earlier versions did not record limits and launch.
  return out[1] and table.concat(out, ", ") or "the launcher, the incumbent or the spec's limits"
end

-- The fingerprint of rows of another program, from the facts in their files.
function provenance.imported_fingerprint(machine, bench)
  return provenance.hash(json.encode({ machine = machine, bench = bench }))
end

-- Completes a record of rows from several machines or benches; `sources` is a list of { path =, record = (or
-- nil) }.
function provenance.merged(record, sources)
  local names = sequences.distinct(sequences.map(sources, function(source)
    return machines.describe(source.record and source.record.machine or {})
  end))
  local prints = sequences.map(sources, function(source)
    return source.record and source.record.fingerprint or "unknown"
  end)
  record.machine, record.bench = { machines = json.array(names) }, { merged = json.array(prints) }
  record.fingerprint = provenance.hash(json.encode({ record.machine, record.bench }))
  return record
end

-- The hash of the keys of a spec of spec.load on which rows depend: predictions are made from rows.
function provenance.spec_hash(spec)
  local keys = {}
  for key, value in pairs(spec) do keys[key] = key ~= "predict" and value or nil end
  return provenance.hash(json.encode(keys))
end

-- The field `spec` of a record: the spec's hash, its keys as spec.load returns them, so that rows have their
-- grid, limits and table settings without spec.lua (spec.recorded reads them), and the text of the workload
-- that its `choice` names (nil: none).
function provenance.of_spec(spec, workload)
  return { hash = provenance.spec_hash(spec), keys = spec, workload = workload }
end

-- The path of the provenance of the rows file at `path`.
function provenance.path_of(path) return (path:gsub("%.csv$", "") .. ".json") end

-- ---- checks of a file: the form of each field that is read ------------------------------------
-- A check: function(value, name) -> nil, or a message about the first part of the value, by name, that has
-- another form.

local function form(wanted, has_form)
  return function(value, name)
    if not has_form(value) then return ("%s is not %s"):format(name, wanted) end
  end
end

local function is_table(value) return type(value) == "table" and value ~= json.null end

local is_text = form("text", function(value) return type(value) == "string" end)
local is_number = form("a number", function(value) return math.type(value) ~= nil end)
local is_integer = form("a whole number", function(value) return math.type(value) == "integer" end)
local is_flag = form("true or false", function(value) return type(value) == "boolean" end)
local is_object = form("an object", function(value) return is_table(value) and #value == 0 end)
local is_list = form("a list", function(value) return is_table(value) and (#value > 0 or not next(value)) end)

local function optional(check)
  return function(value, name) return value ~= nil and check(value, name) or nil end
end

-- An object with these fields, name -> check; it may have others.
local function object_of(fields)
  local names = sorted_keys(fields)
  return function(value, name)
    local problem = is_object(value, name)
    for _, field in ipairs(problem and {} or names) do
      problem = problem or fields[field](value[field], name == "" and field or name .. "." .. field)
    end
    return problem
  end
end

-- An object with any names.
local function map_of(check)
  return function(value, name)
    local problem = is_object(value, name)
    for _, key in ipairs(problem and {} or sorted_keys(value)) do
      problem = problem or check(value[key], name .. "." .. key)
    end
    return problem
  end
end

local function list_of(check)
  return function(value, name)
    local problem = is_list(value, name)
    for i, entry in ipairs(problem and {} or value) do
      problem = problem or check(entry, ("%s[%d]"):format(name, i - 1))
    end
    return problem
  end
end

local parts = object_of { packages = is_integer, numa_nodes = is_integer, cores = is_integer,
  threads = is_integer }
local topology = object_of { machine = parts, usable = parts }

-- The topology of a machine; without hwloc it is "flat".
local function is_topology(value, name) return value ~= "flat" and topology(value, name) or nil end

local machine_fields = { cpu = is_text, cores = is_integer, mpi = is_text, gpu = optional(is_text),
  caches = optional(map_of(is_text)), os = optional(is_text), kernel = optional(is_text),
  memory_gib = optional(is_integer), topology = optional(is_topology), fabric = optional(is_text) }
-- The machine of imported rows, and of rows merged from several machines.
local foreign_fields = { machines = optional(list_of(is_text)) }
for name, check in pairs(machine_fields) do foreign_fields[name] = optional(check) end

local is_machine, is_foreign_machine = object_of(machine_fields), object_of(foreign_fields)

local bench_fields = { hash = optional(is_text), compiler = optional(is_text), isa = optional(is_text),
  protocol = optional(is_integer), imported = optional(is_text), merged = optional(list_of(is_text)) }
local no_time_fields = { strategy = is_text, dtype = is_text, op = is_text, mode = is_text, fusion = is_text,
  hidden_size = is_integer, num_tokens = is_integer, reason = is_text }
local disturbed_fields = { strategy = is_text, dtype = is_text, op = is_text, mode = is_text,
  fusion = is_text, hidden_size = is_integer, num_tokens = is_integer, low_us = is_number,
  high_us = is_number, samples = is_integer }
local refine_fields = { seconds = is_number, settles = is_integer, uncertain = is_integer,
  measures = optional(is_integer) }
-- The keys of a spec are checked where it is used (spec.recorded), apart from those that are compared here.
local limits_fields = { min_samples = optional(is_integer), max_samples = optional(is_integer),
  cell_us = optional(is_number) }
local spec_fields = { hash = optional(is_text), workload = optional(is_text),
  keys = optional(object_of { limits = optional(object_of(limits_fields)) }) }
local launch_fields = { launcher = optional(is_text), incumbent = optional(is_text) }
local interface_fields = { interface = is_text, mbit_per_s = optional(is_integer) }
local network_fields = { interfaces = list_of(object_of(interface_fields)), node_set = optional(is_text),
  slow_nodes = optional(is_integer) }
local plugins_fields = { candidates = list_of(object_of { strategy = is_text }) }

local is_record = object_of { arch = optional(is_text), fingerprint = is_text, machine = is_object,
  bench = object_of(bench_fields), rows = object_of { hash = is_text }, complete = optional(is_flag),
  budget_s = optional(is_number), exhaustive = optional(is_flag), world_size = optional(is_integer),
  nodes = optional(is_integer), beside = optional(is_integer), network = optional(object_of(network_fields)),
  derived = optional(is_integer), launches = optional(is_integer),
  roundtrip_us = optional(is_number),
  launch = optional(object_of(launch_fields)), spec = optional(object_of(spec_fields)),
  placement = optional(is_text), date = optional(is_text), no_time = list_of(object_of(no_time_fields)),
  disturbed = optional(list_of(object_of(disturbed_fields))), refine = optional(object_of(refine_fields)),
  plugins = optional(object_of(plugins_fields)) }

-- Whether the rows were imported, or merged from several machines.
local function is_foreign(record) return record.bench.imported ~= nil or record.bench.merged ~= nil end

local function wrong_record(record)
  if type(record) ~= "table" or record.version ~= VERSION then
    return ("is not a provenance file of version %d"):format(VERSION)
  end
  return is_record(record, "")
    or (is_foreign(record) and is_foreign_machine or is_machine)(record.machine, "machine")
end

-- Returns a message about a field of a machine, as machines.facts returns it, that has another form; or nil.
function provenance.wrong_machine(machine) return is_machine(machine, "machine") end

-- Reads a provenance file. Returns its record | nil, message, also if there is no file.
function provenance.read(path)
  local text, message = file.read(path)
  if not text then return nil, message end
  local record, problem = json.decode(text)
  if not record then return nil, ("%s: is not JSON: %s"):format(path, problem) end
  problem = wrong_record(record)
  if problem then return nil, ("%s: %s; sweep --fresh replaces it"):format(path, problem) end
  return record
end

-- The first record in the `provenance` of these files; nil if none has one.
function provenance.first(files) return sequences.field(files, "provenance")[1] end

-- The TP sizes at which a budget ended the sweep, and how to continue it, as text; nil: none. `ended`: a list
-- of { tp, nodes, budget_s (seconds; 0: unknown) }; `command`: continues it, or nil.
function provenance.budget_words(ended, command)
  if #ended == 0 then return nil end
  local sizes, seconds = {}, ended[1].budget_s
  for i, entry in ipairs(ended) do
    sizes[i] = rank_placement.size(entry.tp, entry.nodes)
    if entry.budget_s ~= seconds then seconds = 0 end
  end
  return ("The budget%s ended the sweep at TP %s. The next sweep keeps the rows and measures nothing; "
    .. "%s continues on them."):format(seconds > 0 and (" of %.14g s"):format(seconds) or "",
    table.concat(sizes, ", "),
    command and ("`%s`"):format(command) or "`sweep --refine`, or the target refine-tables,")
end

-- The sum of the `refine` of these records (planning/refinement.lua); nil: none has it.
function provenance.refinement(records)
  local sum
  for _, record in ipairs(records) do
    if record.refine then
      sum = sum or { seconds = 0, settles = 0, uncertain = 0, measures = 0 }
      for name, value in pairs(sum) do sum[name] = value + (record.refine[name] or 0) end
    end
  end
  return sum
end

-- The gain of `sweep --refine` as text; `sum`: of provenance.refinement. `uncertain`: the number of uncertain
-- choices of the table, and `them`: words for these. Nil if it gains nothing because none is uncertain.
function provenance.refinement_words(sum, uncertain, them)
  if uncertain == 0 and sum.measures == 0 then return nil end
  local minutes = math.floor(sum.seconds / 60 + 0.5)
  local time = minutes < 1 and ("%d s"):format(math.max(1, math.ceil(sum.seconds)))
    or minutes == 1 and "1 minute" or minutes .. " minutes"
  local settled, gains = math.min(sum.settles, uncertain), {}
  if uncertain > 0 then
    gains[1] = ("settle %s of %s"):format(settled == 0 and "none" or settled, them)
  end
  if sum.measures > 0 then
    gains[#gains + 1] = ("measure %d more cell%s"):format(sum.measures, sum.measures == 1 and "" or "s")
  end
  return ("`--refine`, about %s, would %s"):format(time, table.concat(gains, " and "))
end

-- Whether the record belongs to this text of a rows file, and not to an earlier one.
function provenance.describes(record, rows_text) return record.rows.hash == provenance.hash(rows_text) end

local function text_of(record, rows_text)
  record.version = VERSION
  record.rows = { hash = provenance.hash(rows_text) }
  record.no_time = json.array(record.no_time)
  return json.encode(record) .. "\n"
end

-- Writes the text of a rows file and its provenance. If that is interrupted, even by a kill, at most the
-- provenance is written without the rows; rows without a provenance would be refused. Returns true | nil,
-- message.
function provenance.write(csv, rows_text, record)
  local text = text_of(record, rows_text)
  return file.write_all({ { provenance.path_of(csv), text }, { csv, rows_text } }, true)
end

-- Writes a provenance without rows, which has the reasons why nothing has a time. Returns true | nil,
-- message.
function provenance.write_alone(csv, record)
  return file.write_all({ { provenance.path_of(csv), text_of(record, "") } }, true)
end

return provenance
