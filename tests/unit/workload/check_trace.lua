-- Whether a trace follows every rule that readers of profiler traces require: gentables lua check_trace.lua
-- FILE... prints each violation and ends with 1; `require` returns a function: path -> list of violations.
local file = require "core.file"
local json = require "codec.json"

local OPS = { ["aten::mm"] = 2, ["aten::addmm"] = 5, ["record_param_comms"] = 1 }
local COLLECTIVES = { allreduce = true, _allgather_base = true, _reduce_scatter_base = true,
  all_to_all = true, all_to_allv = true }

-- The name of a type in the arguments of ops -> in the metadata of collectives.
local TYPES = { float = "Float", ["c10::BFloat16"] = "BFloat16", ["c10::Half"] = "Half" }

local function is_integer(value) return math.type(value) == "integer" end
local function is_text(value) return type(value) == "string" end

-- A processor computes all in fp32, a GPU in the type of the operands.
local function check_computed_in(own, wrong)
  if type(own.computed_in) ~= "table" then return wrong("no computed_in") end
  local is_host = own.backend == "host"
  for type in pairs(TYPES) do
    local expected = is_host and type ~= "float" and "float" or nil
    if own.computed_in[type] ~= expected then wrong("computed_in of " .. type) end
  end
end

local function check_root(root, wrong)
  for _, key in ipairs { "traceEvents", "schemaVersion", "displayTimeUnit", "baseTimeNanoseconds",
    "record_shapes", "traceName", "deviceProperties", "distributedInfo", "gentables" } do
    if root[key] == nil then wrong("no " .. key) end
  end
  local info = root.distributedInfo
  if #root.deviceProperties ~= info.world_size then wrong("not a device for each rank") end
  if not is_integer(info.rank) or info.pg_count ~= #info.pg_config then wrong("distributedInfo") end
  for _, group in ipairs(info.pg_config) do
    if group.pg_size ~= #group.ranks or not is_text(group.pg_name) then wrong("pg_config") end
  end
  local clocks = { host = { host_thread = true }, cuda = { cupti = true, event = true } }
  local known = clocks[root.gentables.backend]
  if not known or not known[root.gentables.clock] then wrong("no mark of the clock") end
  if type(root.gentables.oversubscribed) ~= "boolean" then wrong("oversubscribed") end
  check_computed_in(root.gentables, wrong)
end

-- Times as in the file: three decimals, and few enough digits for a double to keep nanoseconds.
local function check_times(text, wrong)
  for key, number in text:gmatch('"(%l+)":([%d.eE+-]+)') do
    if (key == "ts" or key == "dur") and not number:find("^%d+%.%d%d%d$") then wrong(key .. " " .. number) end
    if key == "ts" and #number > 16 then wrong("a time too large: " .. number) end
  end
end

local function check_operation(event, wrong)
  local args, count = event.args, OPS[event.name]
  if not count then return wrong("an op that no reader knows: " .. event.name) end
  for _, key in ipairs { "Input Dims", "Input type", "Input Strides", "Concrete Inputs" } do
    if not args[key] or #args[key] ~= count then wrong(event.name .. ": " .. key) end
  end
  for _, type in ipairs(args["Input type"]) do
    if not TYPES[type] and type ~= "Scalar" then wrong("Input type " .. type) end
  end
  if args["Record function id"] ~= 0 or not is_integer(args["Ev Idx"]) then
    wrong("Record function id, Ev Idx")
  end
  if event.name ~= "record_param_comms" and not is_integer(args["Sequence number"]) then
    wrong("Sequence number")
  end
end

local function check_collective(args, type, wrong)
  local name = tostring(args["Collective name"])
  if not COLLECTIVES[name] then wrong("Collective name " .. name) end
  for _, key in ipairs { "In msg nelems", "Out msg nelems", "Group size" } do
    if not is_integer(args[key]) then wrong(key) end
  end
  for _, key in ipairs { "Process Group Name", "Process Group Ranks", "In split size", "Out split size",
    "Process Group Description" } do
    if not is_text(args[key]) then wrong(key) end
  end
  if not type or args.dtype ~= TYPES[type] then wrong("dtype " .. tostring(args.dtype)) end
end

-- A kernel's grid is in the trace if it is known, and never invented.
local function check_place(args, clock, wrong)
  local has = args.grid ~= nil or args.block ~= nil or args.context ~= nil
  local is_whole = has and args.context and #(args.grid or {}) == 3 and #(args.block or {}) == 3
  if clock == "event" and has or clock ~= "event" and not is_whole then wrong("grid, block, context") end
  if clock == "cupti" and not is_integer(args["registers per thread"]) then wrong("registers") end
end

local function check_kernel(event, at, wrong)
  local args = event.args
  local launch, op = at.launches[args.correlation], at.operations[args["External id"]]
  if not launch then return wrong("a kernel without a launch") end
  if not op or launch.args["External id"] ~= args["External id"] then
    return wrong("a kernel without an op")
  end
  if event.ts < launch.ts then wrong("a kernel before its launch") end
  if event.pid ~= args.device or event.tid ~= args.stream or event.pid ~= at.rank then
    wrong("device, stream")
  end
  check_place(args, at.clock, wrong)
  if (type(args["cpu time (us)"]) == "number") ~= at.is_host then wrong("cpu time (us)") end
  if op.name == "record_param_comms" then
    if not event.name:find("^nccl") then wrong("a collective called " .. event.name) end
    local type = op.args["Input type"][1]
    check_collective(args, type, wrong)
    check_collective(op.args, type, wrong)
    if not is_integer(op.args.Rank) then wrong("Rank") end
  end
  local flow = at.flows[args.correlation]
  if not flow or not flow.s or not flow.f then return wrong("a kernel without its arrow") end
  if flow.s.ts ~= launch.ts or flow.s.pid ~= launch.pid or flow.s.tid ~= launch.tid then
    wrong("an arrow's tail")
  end
  if flow.f.ts ~= event.ts or flow.f.pid ~= event.pid or flow.f.tid ~= event.tid or flow.f.bp ~= "e" then
    wrong("an arrow's head")
  end
end

-- A thread runs no longer than the interval is, apart from the difference of two clocks. A collective's
-- kernel has the processor time of all threads, and on the first one's stream begins at the end of the one
-- before.
local function check_processor_time(event, threads, wrong)
  local cpu = event.args and event.args["cpu time (us)"]
  local is_of_all = threads > 1 and event.cat == "kernel" and event.name:find("^nccl")
  if cpu and not is_of_all and cpu > 1.1 * event.dur + 5 then
    wrong(("%s: %.3f us on a processor in %.3f us"):format(event.name, cpu, event.dur))
  end
end

-- A thread waits within a step, for one event after the other, also in the arithmetic of readers that add
-- doubles.
local function check_waits(at, wrong)
  local ends = {}
  for _, event in ipairs(at.annotations) do
    if event.cat == "user_annotation" then ends[#ends + 1] = { event.ts, event.ts + event.dur } end
  end
  table.sort(at.waits, function(a, b) return a.ts < b.ts end)
  for i, wait in ipairs(at.waits) do
    local before, is_within = at.waits[i - 1], false
    if before and before.ts + before.dur > wait.ts then wrong("waits that overlap") end
    for _, step in ipairs(ends) do
      is_within = is_within or wait.ts >= step[1] and wait.ts + wait.dur <= step[2] + 0.0005
    end
    if not is_within then wrong("a wait outside its step") end
    if not is_text(wait.args.bucket) then wrong("a wait for nothing") end
  end
end

-- Events by kind.
local function sort_events(root, wrong)
  local at = { operations = {}, launches = {}, flows = {}, kernels = {}, annotations = {}, named = {},
    streams = {}, waits = {}, rank = root.distributedInfo.rank, correlations = {},
    is_host = root.gentables.backend == "host", clock = root.gentables.clock }
  for _, event in ipairs(root.traceEvents) do
    local args = event.args
    if event.ph == "X" and event.cat == "cpu_op" then
      at.operations[args["External id"]] = event
    elseif event.ph == "X" and event.cat == "cuda_runtime" then
      if at.correlations[args.correlation] then wrong("a correlation twice: " .. args.correlation) end
      at.correlations[args.correlation] = true
      if event.name:lower():find("launch") then at.launches[args.correlation] = event end
      if event.name == "gentablesWait" then table.insert(at.waits, event) end
    elseif event.ph == "X" and event.cat == "kernel" then
      at.kernels[#at.kernels + 1] = event
      at.streams[event.tid] = at.streams[event.tid] or {}
      table.insert(at.streams[event.tid], event)
    elseif event.ph == "s" or event.ph == "f" then
      at.flows[event.id] = at.flows[event.id] or {}
      at.flows[event.id][event.ph] = event
    elseif event.ph == "M" then
      at.named[("%s %s %s"):format(event.name, event.pid, event.tid)] = true
    elseif event.ph == "X" then
      table.insert(at.annotations, event)
    end
  end
  return at
end

local function check_streams(at, wrong)
  for stream, kernels in pairs(at.streams) do
    table.sort(kernels, function(a, b) return a.ts < b.ts end)
    for i = 2, #kernels do
      local before = kernels[i - 1]
      if before.ts + before.dur > kernels[i].ts + 0.0005 then
        wrong("kernels overlap on stream " .. stream)
      end
    end
    if not at.named[("thread_name %s %s"):format(at.rank, stream)] then wrong("a stream without a name") end
  end
  for _, name in ipairs { "process_name", "process_labels", "process_sort_index" } do
    if not at.named[("%s %s 0"):format(name, at.rank)] then wrong("no " .. name) end
  end
end

local function check_steps(at, wrong)
  local seen = {}
  for _, event in ipairs(at.annotations) do
    if event.name:find("^ProfilerStep#%d+$") then
      seen[("%s %s %s"):format(event.cat, event.name, event.tid)] = true
    end
  end
  for stream in pairs(at.streams) do
    if not seen[("gpu_user_annotation ProfilerStep#0 %s"):format(stream)] then
      wrong("a stream without steps")
    end
  end
end

local function check(path)
  local text, out = assert(file.read(path)), {}
  local function wrong(what) out[#out + 1] = path .. ": " .. what end
  local root = assert(json.decode(text))
  check_root(root, wrong)
  check_times(text, wrong)
  local at = sort_events(root, wrong)
  for _, op in pairs(at.operations) do check_operation(op, wrong) end
  for _, launch in pairs(at.launches) do
    local op = at.operations[launch.args["External id"]]
    if not op or launch.pid ~= op.pid or launch.tid ~= op.tid or launch.ts < op.ts or
      launch.ts > op.ts + op.dur then
      wrong("a launch outside its op")
    end
  end
  if #at.kernels == 0 then wrong("no kernels") end
  for _, kernel in ipairs(at.kernels) do check_kernel(kernel, at, wrong) end
  check_streams(at, wrong)
  check_steps(at, wrong)
  for _, event in ipairs(root.traceEvents) do check_processor_time(event, root.gentables.threads, wrong) end
  check_waits(at, wrong)
  return out
end

if arg and arg[1] then
  local failed = false
  for _, path in ipairs(arg) do
    for _, what in ipairs(check(path)) do
      print(what)
      failed = true
    end
  end
  if failed then os.exit(1) end
end
return check
