-- cache.lua: entries of the cache count only for measurements of the same kind. document.lua: a damaged
-- tuned.json is rejected in a line.
local cache = require "tune.cache"
local document = require "tune.document"
local environment = require "tune.environment"
local failure = require "failure"
local file = require "core.file"
local incumbent = require "consult.incumbent"
local lu = require "luaunit"
local system = require "core.system"

local TestCache = {}

local path = os.tmpname()

-- A job of one cell and three candidates; `changes` are other settings.
local function job_of(changes)
  local job = { machine = { cpu = "a", cores = 2 }, identity = { hash = "b" }, launcher = nil, samples = 5,
    warm_up = 1, launches = 1, nodes = 1, sync = "pass",
    backend = "cuda", arch = "sm90-loopback", plugins = {},
    environment = { HOME = "/h", NCCL_ALGO = "RING" }, incumbent = "c", libraries = "d",
    candidates = { MINE = { plugin = true } }, excluded = {}, excluded_at = {}, timeout = 30 }
  for name, value in pairs(changes or {}) do job[name] = value end
  job.cells = { { op = "allreduce", dtype = "bfloat16", size = 1024, world_size = 2, results = {},
    no_time = {}, candidates = { "NCCL", "AUTO", "MINE" } } }
  return job
end

-- The candidates that a job finds in the cache, as text.
local function known_to(changes)
  local job = job_of(changes)
  cache.open(path):take(job)
  local names = {}
  for name in pairs(job.cells[1].known) do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, " ")
end

function TestCache.setUp()
  os.remove(path)
  local job = job_of()
  local kept = cache.open(path)
  kept:take(job)
  kept:missing(job, 2)
  for _, name in ipairs(job.cells[1].candidates) do
    table.insert(job.cells[1].results, { strategy = name, epilogue = "none", time_us = 1,
      low_us = 1, high_us = 1, samples = 5 })
  end
  kept:save(job, job.cells)
end

function TestCache.tearDown()
  os.remove(path)
  os.remove(path .. ".lock")
end

function TestCache.test_the_same_is_known()
  lu.assertEquals(known_to(), "AUTO MINE NCCL")
  lu.assertEquals(known_to { environment = { HOME = "/elsewhere", NCCL_ALGO = "RING", LANG = "C" } },
    "AUTO MINE NCCL")
end

-- A candidate's key may have been given to another one's result.
function TestCache.test_a_result_of_another_candidate_is_unknown()
  local text = assert(file.read(path)):gsub('"strategy": "MINE"', '"strategy": "x=y"')
  assert(file.write(path, text))
  lu.assertEquals(known_to(), "AUTO NCCL")
end

function TestCache.test_settings_that_change_times_make_all_unknown()
  local others = { { machine = { cpu = "a", cores = 3 } }, { identity = { hash = "x" } },
    { launcher = "srun -n {ranks}" }, { samples = 6 }, { warm_up = 2 }, { launches = 2 }, { sync = "op" },
    { arch = "sm90" }, { environment = { HOME = "/h" } },
    { environment = { HOME = "/h", NCCL_ALGO = "TREE" } },
    { environment = { HOME = "/h", NCCL_ALGO = "RING", OMPI_MCA_btl = "self" } },
    { environment = { HOME = "/h", NCCL_ALGO = "RING", UCX_TLS = "posix" } },
    { environment = { HOME = "/h", NCCL_ALGO = "RING", CUDA_VISIBLE_DEVICES = "1,0" } } }
  for i, changes in ipairs(others) do lu.assertEquals(known_to(changes), "", "change " .. i) end
end

-- With a plug-in, ranks that share a GPU have a launch each; without, one launch for all.
function TestCache.test_a_launch_for_each_rank_is_no_joint_one()
  lu.assertEquals(known_to { plugins = { "./mine.so" } }, "")
end

function TestCache.test_only_candidates_that_load_a_library_depend_on_it()
  lu.assertEquals(known_to { libraries = "x" }, "AUTO NCCL")
  lu.assertEquals(known_to { incumbent = "x" }, "MINE NCCL")
end

-- Times of different passes are not compared: MINE was not measured in the second one, so no entry counts.
function TestCache.test_candidates_of_different_passes_are_unknown_together()
  local job = job_of()
  job.cells[1].candidates = { "NCCL", "AUTO" }
  for _, name in ipairs(job.cells[1].candidates) do
    table.insert(job.cells[1].results, { strategy = name, epilogue = "none", time_us = 2,
      low_us = 1, high_us = 2, samples = 5 })
  end
  local kept = cache.open(path)
  job.print = nil
  kept.fresh = true
  kept:take(job)
  kept:save(job, job.cells)
  lu.assertEquals(known_to(), "")
end

-- Variables of an environment, in addition to the job's.
local function with(variables)
  local all = { HOME = "/h", NCCL_ALGO = "RING" }
  for name, value in pairs(variables) do all[name] = value end
  return all
end

-- Variables for logs, dumps and caches change no time; but without NCCL's log it is unknown whether
-- NCCL_SYMMETRIC was really used.
function TestCache.test_settings_that_change_no_time_make_nothing_unknown()
  for name, value in pairs { NCCL_DEBUG = "INFO", NCCL_DEBUG_FILE = "/tmp/log", NCCL_DEBUG_SUBSYS = "ALL",
    NCCL_TOPO_DUMP_FILE = "/tmp/topo", CUDA_CACHE_PATH = "/tmp/kernels", CUDA_CACHE_DISABLE = "1",
    CUDA_HOME = "/usr/local/cuda", CUDA_VERSION = "13.0", OMPI_MCA_btl_base_verbose = "10",
    UCX_LOG_LEVEL = "info", UCX_WARN_UNUSED_ENV_VARS = "n" } do
    lu.assertEquals(known_to { environment = with { [name] = value } }, "AUTO MINE NCCL", name)
  end
  for name, value in pairs { NCCL_PROTO = "LL", CUDA_MODULE_LOADING = "EAGER", OMPI_MCA_btl = "self",
    PMIX_MCA_gds = "hash", UCX_TLS = "posix", GLIBC_TUNABLES = "glibc.malloc.tcache_count=0",
    LD_PRELOAD = "libhugetlbfs.so" } do
    lu.assertEquals(known_to { environment = with { [name] = value } }, "", name)
  end
end

function TestCache.test_symmetric_kernels_without_a_log_are_others()
  local function known_as(all)
    local job = job_of { environment = all }
    job.cells[1].candidates = { "NCCL_SYMMETRIC" }
    local kept = cache.open(path)
    kept:take(job)
    local is_known = job.cells[1].known.NCCL_SYMMETRIC == true
    table.insert(job.cells[1].no_time, { strategy = "NCCL_SYMMETRIC", epilogue = "none", reason = "no log" })
    kept:save(job, job.cells)
    return is_known
  end
  lu.assertFalse(known_as(with { NCCL_DEBUG = "WARN" }))
  lu.assertTrue(known_as(with { NCCL_DEBUG_FILE = "/tmp/log" }))
  lu.assertFalse(known_as(with {})) -- it has a log, and must be measured
end

-- A file that a variable names counts by its content.
function TestCache.test_a_file_that_is_named_counts()
  local named = os.tmpname()
  local function fill(text)
    local handle <close> = assert(io.open(named, "w"))
    handle:write(text)
  end
  local function variables() return environment.variables { NCCL_CONF_FILE = named, NCCL_ALGO = "RING" } end
  fill "NCCL_PROTO=LL"
  local one = variables()
  lu.assertEquals(one.NCCL_ALGO, "RING")
  lu.assertEquals(variables(), one)
  fill "NCCL_PROTO=SIMPLE"
  lu.assertNotEquals(variables(), one)
  os.remove(named)
end

function TestCache.test_the_environment_is_this_processs()
  lu.assertEquals(system.environment().PATH, os.getenv("PATH"))
  lu.assertNil(system.environment()["no such name"])
end

local function write(name, text) assert(file.write(name, text)) end

-- Files that were written by hand, or by another version of the program.
function TestCache.test_damaged_files_are_rejected_in_a_line()
  local whole =
    '{ "strategy": "MPI", "epilogue": "none", "time_us": 1, "low_us": 1, "high_us": 1, "samples": 5 }'
  local function refused(results)
    write(path, ('{ "version": 1, "results": %s }'):format(results))
    local opened, problem = pcall(cache.open, path)
    lu.assertEquals(opened, false, results)
    lu.assertStrContains(problem.message, path .. ": is no cache of this gentables, or damaged")
  end
  for _, results in ipairs { "5", '{ "a": 1 }', '{ "a": 5 }', '{ "a": [5] }', '{ "a": [] }', '[["a"]]',
    ('{ "a": [%s] }'):format(whole:gsub('"low_us": 1, ', "")),
    ('{ "a": [%s] }'):format(whole:gsub('"time_us": 1', '"time_us": "abc"')),
    ('{ "a": [%s] }'):format(whole:gsub('"MPI"', "7")),
    ('{ "a": [%s] }'):format(whole:gsub('"time_us": 1', '"time_us": 0')),
    ('{ "a": [%s] }'):format(whole:gsub('"low_us": 1', '"low_us": 2')),
    ('{ "a": [%s] }'):format(whole:gsub('"high_us": 1', '"high_us": 1e300')),
    ('{ "a": [%s] }'):format(whole:gsub('"samples": 5', '"samples": 0.5')),
    ('{ "a": [%s] }'):format(whole:gsub(" }", ', "accumulate": "fp8" }')),
    ('{ "a": [%s] }'):format(whole:gsub(" }", ', "placement": "here" }')),
    '{ "a": [{ "strategy": "MPI", "epilogue": "none", "reason": "late", "left_out": true }] }' } do
    refused(results)
  end
  write(path, ('{ "version": 1, "results": { "a": [%s] } }'):format(whole))
  cache.open(path)
end

function TestCache.test_the_incumbent_is_the_one_that_is_named_or_those_beside_the_bench()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local function print_of(all) return incumbent.print_of(folder .. "/bench", all) end
  local none = print_of {}
  write(folder .. "/gentables_incumbent_sm90.so", "one")
  local one = print_of {}
  lu.assertNotEquals(one, none)
  write(folder .. "/gentables_incumbent_sm90.so", "another")
  lu.assertNotEquals(print_of {}, one)
  write(folder .. "/named", "one")
  lu.assertEquals(print_of { GENTABLES_INCUMBENT = folder .. "/named" }, one)
  assert(os.execute("rm -r " .. folder))
end

-- ---- tuned.json ---------------------------------------------------------------------------------

local host_job = { arch = "host", machine = { cpu = "a", cores = 2, mpi = "b" } }
local whole = [[
{ "version": 2, "arch": "host", "machine": { "cpu": "a", "cores": 2, "mpi": "b" },
  "default": "MPI", "launches": 1,
  "excluded": { "BAD": "it crashed" }, "cells": [
  { "op": "alltoallv", "world_size": 2, "dtype": "bfloat16", "size": 1024, "splits": "2:1",
    "strategy": "MPI", "epilogue": "none", "is_default": false, "launches": 1, "candidates": [],
    "no_time": [] } ] }
]]

local TestDocument = {}

function TestDocument.tearDown() os.remove(path) end

function TestDocument.test_a_whole_document_is_read()
  assert(file.write(path, whole))
  lu.assertEquals(document.read(path, host_job).cells[1].splits, "2:1")
end

-- Names in it become Python code.
function TestDocument.test_damaged_documents_are_rejected_in_a_line()
  for old, new in pairs {
    ['"op": "alltoallv", '] = "", ['"alltoallv"'] = '"sum"', ['"bfloat16"'] = "7",
    ['"size": 1024'] = '"size": -1', ['"world_size": 2'] = '"world_size": 2.5', ['"2:1"'] = '"0:0"',
    ['"splits": "2:1"'] = '"splits": 21', ['"default": "MPI"'] = '"default": null',
    ['"strategy": "MPI"'] = '"strategy": "\\", __import__(\\"os\\")"',
    ['"epilogue": "none"'] = '"epilogue": "some"', ['"it crashed"'] = "[]",
    ['"cells": %[.*'] = '"cells": [5] }',
    ['"candidates": %[%]'] = '"candidates": null', ['"is_default": false'] = '"is_default": "no"',
    ['"cores": 2'] = '"cores": null',
    ['"version": 2'] = '"version": 1', ['"machine": {[^}]*}'] = '"machine": null', ["^.*$"] = "[]",
  } do
    local text, count = whole:gsub(old, new)
    lu.assertEquals(count, 1, old)
    assert(file.write(path, text))
    local message, code = failure(document.read, path, host_job)
    lu.assertEquals(code, 2)
    lu.assertEquals(message, path .. ": is not of this version of gentables, or damaged; remove it, or use "
      .. "another --out")
  end
end

return require "suites" { { "TestCache", TestCache }, { "TestDocument", TestDocument } }
