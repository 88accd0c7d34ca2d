-- Shared by the Lua tests of traces: small traces, planted event by event, with known results.
--
--   local trace = lib.trace { rank = 0, world_size = 2 }
--   trace:gemm { m = 64, n = 64, k = 64, kernel = "nvjet_TN", start = 100, duration = 5 }
--   trace:collective { name = "allreduce", elements = 1024, start = 120, duration = 30 }
--   trace:write(path)
local file = require "core.file"
local json = require "codec.json"
local luaunit = require "luaunit"

local lib = {}

lib.work = assert(os.getenv("WORK"))

local trace = {}
trace.__index = trace

function lib.trace(header)
  return setmetatable({ header = header, events = {}, next_id = 1 }, trace)
end

local function add(self, event) self.events[#self.events + 1] = json.object(event) end

local function arrow(self, phase, id, pid, tid, ts)
  add(self, { { "ph", phase }, { "id", id }, { "pid", pid }, { "tid", tid }, { "ts", ts }, { "cat", "ac2g" },
    { "name", "ac2g" }, { "bp", phase == "f" and "e" or nil } })
end

-- A launch on the host and its event on the GPU, joined by an arrow.
local function launch(self, id, name, start, duration, stream, arguments)
  arguments.correlation, arguments["External id"], arguments.stream = id, id, stream
  add(self, { { "ph", "X" }, { "cat", "cuda_runtime" }, { "name", "cudaLaunchKernel" }, { "pid", 1 },
    { "tid", 1 }, { "ts", start - 10.0 }, { "dur", 1.0 }, { "args", { correlation = id } } })
  arrow(self, "s", id, 1, 1, start - 10.0)
  arrow(self, "f", id, 0, stream, start + 0.0)
  add(self, { { "ph", "X" }, { "cat", "kernel" }, { "name", name }, { "pid", 0 }, { "tid", stream },
    { "ts", start + 0.0 }, { "dur", duration + 0.0 }, { "args", arguments } })
end

local function new_id(self)
  self.next_id = self.next_id + 1
  return self.next_id
end

-- An aten::mm of m x k and k x n, and its kernel.
function trace:gemm(gemm)
  local id, start = new_id(self), gemm.start
  add(self, { { "ph", "X" }, { "cat", "cpu_op" }, { "name", "aten::mm" }, { "pid", 1 }, { "tid", 1 },
    { "ts", start - 12.0 }, { "dur", 4.0 }, { "args", { ["External id"] = id,
      ["Input Dims"] = { { gemm.m, gemm.k }, { gemm.k, gemm.n } },
      ["Input type"] = { "c10::BFloat16", "c10::BFloat16" },
      ["Input Strides"] = { { gemm.k, 1 }, { gemm.n, 1 } }, ["Concrete Inputs"] = { "", "" } } } })
  launch(self, id, gemm.kernel, start, gemm.duration, 7, {})
end

-- A kernel without an op around its launch, with the name of one of attention.
function trace:attention(one) launch(self, new_id(self), one.kernel, one.start, one.duration, 7, {}) end

-- The begin of a step of a model.
function trace:embedding(start)
  add(self, { { "ph", "X" }, { "cat", "cpu_op" }, { "name", "aten::embedding" }, { "pid", 1 }, { "tid", 1 },
    { "ts", start + 0.0 }, { "dur", 1.0 } })
end

local function ranks_text(count)
  local ranks = {}
  for i = 1, count do ranks[i] = i - 1 end
  return "[" .. table.concat(ranks, ", ") .. "]"
end

-- A collective's kernel; without a name it has no metadata. Fields: name, elements, out_elements, dtype,
-- group, group_size, ranks, start, duration, stream, kernel.
function trace:collective(one)
  local arguments = {}
  if one.name then
    local size = one.group_size or self.header.world_size
    arguments = { ["Collective name"] = one.name, ["In msg nelems"] = one.elements,
      ["Out msg nelems"] = one.out_elements or one.elements, ["Group size"] = size,
      dtype = one.dtype or "BFloat16", ["In split size"] = "[]", ["Out split size"] = "[]",
      ["Process Group Name"] = one.group or "0", ["Process Group Ranks"] = one.ranks or ranks_text(size) }
  end
  launch(self, new_id(self), one.kernel or "ncclDevKernel_Generic", one.start, one.duration,
    one.stream or 20, arguments)
end

function trace:annotation(name, start, duration)
  add(self, { { "ph", "X" }, { "cat", "user_annotation" }, { "name", name }, { "pid", 1 }, { "tid", 1 },
    { "ts", start + 0.0 }, { "dur", duration + 0.0 } })
end

-- A step of torch's profiler.
function trace:step(number) self:annotation("ProfilerStep#" .. number, 80 + 500 * (number % 2), 490) end

function trace:text()
  local header = self.header
  return json.encode(json.object { { "schemaVersion", 1 }, { "baseTimeNanoseconds", header.base },
    { "distributedInfo", header.world_size and { backend = "nccl", rank = header.rank,
      world_size = header.world_size } or nil }, { "traceEvents", json.array(self.events) } })
end

function trace:write(path)
  assert(file.make_folder(path:match("^(.*)/")))
  assert(file.write(path, self:text()))
end

-- The path of a rank's trace in a sweep below the test's folder.
function lib.path(sweep, threads, channels, rank)
  return ("%s/%s/%dthread/nccl_%dchannels/torch_profiler/rank%d/trace.json"):format(lib.work, sweep, threads,
    channels, rank)
end

-- Runs gentables, or the copy `lib.gentables`, with these words in front (`env A=B`); returns its exit code,
-- stdout, stderr.
function lib.run_with(front, ...)
  local words = { front, lib.gentables or os.getenv("GENTABLES") }
  for _, word in ipairs { ... } do words[#words + 1] = ("'%s'"):format(word) end
  local out, errors = lib.work .. "/stdout", lib.work .. "/stderr"
  local _, how, code = os.execute(("%s >'%s' 2>'%s'"):format(table.concat(words, " "), out, errors))
  assert(how == "exit", "ended by a signal")
  return code, assert(file.read(out)), assert(file.read(errors))
end

function lib.run(...) return lib.run_with("env", ...) end

-- lib.ends_with(0, lib.run(...)): expects this exit code; returns stdout and stderr.
function lib.ends_with(wanted, code, said, errors)
  luaunit.assertEquals(code, wanted, errors)
  return said, errors
end

-- lib.reports(2, part, lib.run(...)): expects this exit code, and this part of stderr; returns stderr.
function lib.reports(wanted, part, code, _, errors)
  luaunit.assertEquals(code, wanted, errors)
  luaunit.assertStrContains(errors, part)
  return errors
end

-- The rows of a CSV, by title.
function lib.csv(path)
  local rows = assert(require("codec.csv").read(path)).rows
  return rows
end

-- An empty folder for this test.
function lib.clean()
  os.execute(("rm -rf '%s'"):format(lib.work))
  assert(file.make_folder(lib.work))
end

return lib
