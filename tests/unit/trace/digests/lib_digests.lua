-- Shared by the tests of digests: a sweep of traces, files in folders, and the commands that take digests.
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local trace_digest = require "trace.runs.trace_digest"

local digests = {}

digests.sweep, digests.out = lib.work .. "/sweep", lib.work .. "/digests"

function digests.trace(rank, late, options)
  options = options or {}
  local trace = lib.trace { rank = rank, world_size = options.world_size or 2, base = 1000000 }
  for i = 1, options.count or 12 do
    trace:gemm { m = 2 ^ (5 + i % 3) | 0, n = 64, k = 32, kernel = "nvjet_tst_64x64_NT", start = i * 100,
      duration = 10 + (i * 7 + late) % 13 }
    trace:collective { name = "allreduce", elements = 64 * i, start = i * 100 + 5 * rank + late % 3,
      duration = 30 + i / 7 }
    trace:collective { name = "all_to_allv", elements = 64 * i * (1 + rank), start = i * 100 + 50,
      duration = 20 }
  end
  trace:collective { kernel = "void mesh_sum<float>(float*)", start = 9000 + late, duration = 40 }
  if options.first_step then
    for number = options.first_step, options.last_step do trace:step(number) end
  end
  return trace
end

-- Two ranks of two configurations.
function digests.plant(options)
  for _, threads in ipairs { 256, 512 } do
    for rank = 0, 1 do
      digests.trace(rank, threads // 256 + rank, options):write(lib.path("sweep", threads, 28, rank))
    end
  end
end

-- The files below a folder, with their bytes.
function digests.tree(folder, into, prefix)
  into, prefix = into or {}, prefix or ""
  for _, name in ipairs(assert(file.list(folder))) do
    local path = folder .. "/" .. name
    if file.status(path) == "folder" then
      digests.tree(path, into, prefix .. name .. "/")
    else
      into[prefix .. name] = assert(file.read(path))
    end
  end
  return into
end

-- Runs trace digest; returns the numbers of digests that were made and present, and stderr.
function digests.make(code, ...)
  local said, errors = lib.ends_with(code, lib.run("trace", "digest", ...))
  local made, kept = said:match("(%d+) made, (%d+) already present")
  return tonumber(made), tonumber(kept), errors
end

-- The results of all commands over ranks from these traces or digests, as files and what they printed on
-- stderr, without the names of the folders.
function digests.results(input, ...)
  local out = lib.work .. "/results"
  os.execute(("rm -rf '%s'"):format(out))
  local said, options = {}, { ... }
  for _, words in ipairs { { "collectives" }, { "gemm" }, { "variance" }, { "timestamps" }, { "overlap" },
    { "timestamps", "--all" }, { "pipeline", "--without", "reports,merge,plots" } } do
    table.move(options, 1, #options, #words + 1, words)
    local _, errors = lib.ends_with(0, lib.run("trace", words[1], input, "--out", out,
      table.unpack(words, 2)))
    said[#said + 1] = errors:gsub(input:gsub("%p", "%%%0"), "INPUT")
  end
  local found = digests.tree(out)
  for name in pairs(found) do
    if name:find("/.gentables/", 1, true) then found[name] = nil end -- stamps have the times of the inputs
  end
  found.stderr = table.concat(said)
  return found
end

-- Writes a file in place, so that inode and time stay the same.
function digests.overwrite(path, text)
  local reference = lib.work .. "/reference"
  os.execute(("touch -r '%s' '%s'"):format(path, reference))
  local opened = assert(io.open(path, "r+b"))
  assert(opened:write(text))
  assert(opened:close())
  os.execute(("touch -r '%s' '%s'"):format(reference, path))
end

-- Gives the digest at `path` the identity of its trace as it is now.
function digests.renew(path)
  local digest, values = assert(trace_digest.open(path)), {}
  local header = digest.header
  for field in pairs(header.parts) do values[field] = digest:get { field = field } end
  local identity = assert(trace_digest.identity(header.source))
  trace_digest.write(path, header.source, identity, header.contents, values)
end

-- Expects one line on stderr with this part, and this exit code.
function digests.one_line(code, part, ...)
  local errors = lib.reports(code, part, lib.run(...))
  luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
end

return digests
