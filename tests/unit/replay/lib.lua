-- Shared by the tests of replays: traces of ops with known kernel times, running gentables, and stand-ins for
-- other programs.
--
--   local trace = lib.trace()
--   trace:run("aten::mm", 50, { dims = {...}, types = {...} })       an op, and its kernel of 50 µs
--   lib.save(trace, "rank_0.json", { device = "AMD EPYC" })
local csv = require "codec.csv"
local file = require "core.file"
local json = require "codec.json"
local process = require "core.process"
local small_trace = require "unit.trace.reports.small_trace"
local traces = require "unit.trace.lib"

local lib = setmetatable({}, { __index = traces })

-- What the tests of replays write, with --out; and the sheets there, with --csv.
lib.out = lib.work .. "/out"
lib.sheets = lib.out .. "/node_replay_report_csvs"

lib.replay = os.getenv("GENTABLES"):gsub("[^/]*$", "") .. "gentables-replay"

function lib.trace()
  local trace, at = small_trace.new(), 0
  function trace.run(self, name, duration, args, kernel)
    at = at + 1000
    self:op(name, at, 100, args)
    self:launch(at + 10, duration, { kernel = kernel })
  end
  return trace
end

-- An mm of these sizes; `more` replaces its default arguments.
function lib.mm(m, n, k, more)
  local args = { dims = { { m, k }, { k, n } }, types = { "float", "float" },
    strides = { { k, 1 }, { n, 1 } }, concrete = { "", "" } }
  for key, value in pairs(more or {}) do args[key] = value end
  return args
end

function lib.addmm(m, n, k, added, dtype)
  local dims = { added, { m, k }, { k, n }, {}, {} }
  return { dims = dims, types = { dtype, dtype, dtype, "Scalar", "Scalar" },
    strides = { #added == 1 and { 1 } or { n, 1 }, { k, 1 }, { 1, k }, {}, {} },
    concrete = { "", "", "", "1", "1" } }
end

-- A convolution of 3 × 3 with padding 1.
function lib.convolution(batch, channels, size, dtype)
  local image, filter = { batch, channels, size, size }, { channels, channels, 3, 3 }
  local image_strides = { channels * size * size, size * size, size, 1 }
  return { dims = { image, filter, {}, {}, {}, {}, {}, {}, {} },
    types = { dtype, dtype, "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar" },
    strides = { image_strides, { channels * 9, 9, 3, 1 }, {}, {}, {}, {}, {}, {}, {} },
    concrete = { "", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1" } }
end

-- The backward of that convolution; mask: of its gradients, as in a trace.
function lib.convolution_backward(batch, channels, size, dtype, mask)
  local args = lib.convolution(batch, channels, size, dtype)
  table.insert(args.dims, 1, args.dims[1])
  table.insert(args.strides, 1, args.strides[1])
  table.insert(args.types, 1, dtype)
  args.types[4] = "ScalarList" -- sizes of the bias
  table.insert(args.concrete, 1, "")
  args.concrete[4], args.concrete[11] = ("[%d]"):format(channels), mask
  return args
end

-- Writes the trace; header = { device, threads, rank, world_size, gentables }. Returns its path.
function lib.save(trace, name, header)
  local path = ("%s/%s"):format(lib.work, name)
  assert(file.make_folder(path:match("^(.*)/")))
  local document = { traceEvents = json.array(trace.events) }
  header = header or {}
  if header.device then
    document.deviceProperties = json.array { { id = 0, name = header.device, numSms = header.threads } }
  end
  document.gentables = header.gentables
  if header.rank then document.distributedInfo = { rank = header.rank, world_size = header.world_size } end
  assert(file.write(path, json.encode(document)))
  return path
end

-- Makes the program under test a copy of gentables beside this stand-in, as gentables-replay; nil: the real
-- one.
function lib.take(text)
  traces.gentables = text and lib.program("gentables-replay", text):gsub("%-replay$", "")
  if not text then return end
  local bin = os.getenv("GENTABLES"):match("^(.*)/")
  os.execute(("cp '%s/gentables' '%s' && ln -sfn '%s/../share' '%s/../lib' '%s'"):format(bin, lib.gentables,
    bin, bin, lib.work))
end

-- Rows of a sheet in a folder of CSVs, by title; at least one, because tests iterate over them.
function lib.rows(folder, sheet)
  local rows = assert(csv.read(("%s/%s.csv"):format(folder, sheet))).rows
  assert(#rows > 0, sheet .. " has no row")
  return rows
end

-- The entry of the sheet node_replay with this name.
function lib.about(folder, what)
  for _, row in ipairs(lib.rows(folder, "node_replay")) do
    if row.what == what then return row.value end
  end
end

-- A program in the folder `bin` of this test.
function lib.program(name, text)
  local folder = lib.work .. "/bin"
  assert(file.make_folder(folder))
  assert(file.write(folder .. "/" .. name, "#!/bin/sh\n" .. text))
  os.execute(("chmod +x '%s/%s'"):format(folder, name))
  return folder .. "/" .. name
end

-- The text of a program that greets like gentables-replay and runs these lines for each request, which is
-- $line.
function lib.serving(lines, device)
  return ([[
echo "hello protocol=1 threads=1 backend=host device=%s"
echo "ready"
while read -r line && [ "$line" != quit ]; do
%s
done
]]):format(device or "a stand-in", lines)
end

-- gentables-replay's name for this machine, and its libraries: { openblas = true... }.
function lib.host()
  local child = assert(process.start { lib.replay, "--serve" })
  local device, libraries = nil, {}
  while true do
    local line = assert(child:read_line(60))
    device = device or line:match("^hello .* device=(.*)$")
    local name = line:match("^present name=(%S+)")
    if name then libraries[name] = true end
    if line == "ready" then break end
  end
  child:close(1)
  return device, libraries
end

-- A reason to skip if one of these libraries is missing, else nil; and the machine's name.
function lib.lacks(...)
  local device, libraries = lib.host()
  for _, name in ipairs { ... } do
    if not libraries[name] then return "no " .. name, device end
  end
  return nil, device
end

return lib
