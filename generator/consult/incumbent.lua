-- The incumbent: a table in use, made into a module that the bench loads. AUTO calls its lookup
-- (bench/measure/incumbent.c). The table is an allreduce_table.h, or TensorRT-LLM's customAllReduceUtils.h
-- for one SM version.
local compiled = require "consult.compiled"
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local provenance = require "rows.provenance"
local sequences = require "base.sequences"

local incumbent = {}

local WORDS = { "-O2", "-shared", "-fPIC" } -- as a program's: what a lookup costs counts

-- The strategies of TensorRT-LLM's tables that the backend has.
local function choices_of(backend)
  return sequences.filter(lists.strategies, function(strategy)
    return strategy.trtllm and lists.may_win(strategy.name) and lists.runs_on(strategy, backend)
  end)
end

local function of_trtllm(path, text, arch)
  local sm = arch:match("^sm(%d+)")
  if not sm then
    fail.input("--incumbent %s: is for GPUs, and rows here are of %s; give its allreduce_table.h",
      path, arch)
  end
  local source = compiled.render("incumbent/trtllm", { path = compiled.absolute(path),
    fusions = lists.fusions, strategies = choices_of(lists.arch(arch).backend) })
  return { compiler = os.getenv("CXX") or "c++", words = WORDS, suffix = "cpp", source = source,
    others = compiled.trtllm_stubs(text, sm) }
end

local function of_header(path, prefix)
  local source = compiled.render("incumbent/c", { path = compiled.absolute(path), prefix = prefix })
  return { compiler = os.getenv("CC") or "cc", words = WORDS, suffix = "c", source = source }
end

-- The module of the header at `path`, for rows of an arch: { path = }, which is removed when it is closed.
function incumbent.module(path, arch)
  local text, message = file.read(path)
  if not text then fail.input("--incumbent: %s", message) end
  local prefix = compiled.prefix_of(text)
  if not prefix and not compiled.is_trtllm_header(text) then
    fail.input("--incumbent %s: has no lookup; allreduce_table.h or customAllReduceUtils.h is required",
      path)
  end
  return compiled.make(path, prefix and of_header(path, prefix) or of_trtllm(path, text, arch))
end

-- A hash of the modules that a bench may load: the one that its environment names, or those beside it.
function incumbent.print_of(program, environment)
  local folder = program:match("^(.*)/[^/]*$") or "."
  local paths = sequences.map(file.list(folder) or {}, function(name)
    return name:find("^gentables_incumbent.*%.so$") and folder .. "/" .. name or nil
  end)
  local named = environment.GENTABLES_INCUMBENT
  local texts = sequences.map(named and { named } or paths, function(path) return file.read(path) or path end)
  return provenance.hash(table.concat(texts, "\0"))
end

return incumbent
