-- Small traces made by hand, for tests of reports: one call for each event, and the sheets of a trace.
--
--   local trace = small_trace.new()
--   local mm = trace:op("aten::mm", 10, 20, { dims = {...}, types = {...} })
--   trace:launch(12, 5)               a call of the runtime at 12 µs, and its kernel of 5 µs
--   local sheets, notes = trace:sheets("name of a file")
local file = require "core.file"
local json = require "codec.json"
local rank_report = require "trace.reports.rank_report"
local rank = require "trace.ops.rank"

local small_trace = {}
small_trace.__index = small_trace

function small_trace.new()
  return setmetatable({ events = {}, correlation = 0, gpu_at = 1000 }, small_trace)
end

-- Adds an event unchanged; returns its uid.
function small_trace:add(event)
  self.events[#self.events + 1] = event
  return #self.events - 1
end

-- The list with all lists in it marked as arrays, so that empty ones are not written as objects.
local function lists(value)
  if type(value) ~= "table" then return value end
  local out = {}
  for i, one in ipairs(value) do out[i] = lists(one) end
  return json.array(out)
end

function small_trace:op(name, start, duration, args)
  args = args or {}
  return self:add { ph = "X", cat = "cpu_op", name = name, pid = 1, tid = args.tid or 1, ts = start,
    dur = duration, args = { ["Input Dims"] = lists(args.dims), ["Input type"] = lists(args.types),
      ["Input Strides"] = lists(args.strides), ["Concrete Inputs"] = lists(args.concrete),
      ["Sequence number"] = args.sequence } }
end

function small_trace:kernel(start, duration, args)
  args = args or {}
  return self:add { ph = "X", cat = args.cat or "kernel", name = args.kernel or "some_kernel", pid = 0,
    tid = args.stream or 7, ts = start, dur = duration,
    args = { correlation = args.correlation, stream = args.stream or 7 } }
end

-- A launch at `start`, and its GPU event of `duration`, at args.at or one µs after the last one. args:
-- kernel, runtime (names), cat, tid, stream, without_flow.
function small_trace:launch(start, duration, args)
  args = args or {}
  self.correlation = self.correlation + 1
  local number, at = self.correlation, args.at or self.gpu_at + 1
  self.gpu_at = math.max(self.gpu_at, at + duration)
  self:add { ph = "X", cat = args.launch_cat or "cuda_runtime", name = args.runtime or "cudaLaunchKernel",
    pid = 1, tid = args.tid or 1, ts = start, dur = 1, args = { correlation = number } }
  if not args.without_flow then
    self:add { ph = "s", cat = "ac2g", name = "ac2g", id = number, pid = 1, tid = args.tid or 1, ts = start }
    self:add { ph = "f", cat = "ac2g", name = "ac2g", id = number, pid = 0, tid = args.stream or 7, ts = at,
      bp = "e" }
  end
  args.correlation = number
  return self:kernel(at, duration, args)
end

-- An op of 10 µs and, 1 µs later, its launch, as op and launch take them.
function small_trace:ran(name, start, duration, args, launch_args)
  self:op(name, start, 10, args)
  return self:launch(start + 1, duration, launch_args)
end

-- Writes the trace, with the GPU self.device if it is set, of self.multiprocessors or 132; returns its path.
function small_trace:write(name)
  local folder = os.getenv("WORK")
  assert(file.make_folder(folder))
  local path = ("%s/%s.json"):format(folder, name)
  assert(file.write(path, json.encode { traceEvents = json.array(self.events),
    deviceProperties = self.device and json.array { { name = self.device,
      numSms = self.multiprocessors or 132 } } or nil }))
  return path
end

function small_trace:rank(name) return assert(rank.open(self:write(name))) end

-- The sheets by name, each with `cell(row, title)`; and the notes about incomplete data.
function small_trace:sheets(name, options)
  local list, notes = rank_report.sheets(self:rank(name), options)
  local by_name = {}
  for _, sheet in ipairs(list) do
    local place = {}
    for i, title in ipairs(sheet.columns) do place[title] = i end
    function sheet.cell(row, title) return sheet.rows[row][assert(place[title], title)] end
    by_name[sheet.name] = sheet
  end
  return by_name, notes
end

return small_trace
