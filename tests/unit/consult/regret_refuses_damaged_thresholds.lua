-- thresholds.json with every value replaced or removed in its turn: regret's lookup answers, or refuses the
-- file with a failure that names it. It never ends in an error of Lua.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local lookup = require "consult.lookup"
local lu = require "luaunit"
local scratch = require "system.scratch"
local sorted_keys = require("base.ordering").sorted_keys

local TEXT = [[{ "format": "gentables thresholds", "version": 1, "arch": "host", "capability": null,
  "op": "allreduce", "dtype": "bfloat16", "fallback": "MPI", "world_sizes": { "2": {
    "custom_max_bytes": 2097152, "measured_bytes": [2048, 2097152],
    "rules": [ { "max_bytes": 4096, "strategy": "ONESHOT" },
      { "max_bytes": null, "strategy": "TWOSHOT" } ] } },
  "nodes": { "2": { "4": { "rules": [ { "max_bytes": null, "strategy": "MPI" } ] } } } }]]

local SHAPES = {}
for i, num_tokens in ipairs { 1, 2, 4, 4096 } do
  SHAPES[i] = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE",
    hidden_size = 1024, num_tokens = num_tokens }
end

SHAPES[5] = { world_size = 4, nodes = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
  fusion = "NONE", hidden_size = 1024, num_tokens = 1 }

local ODD = { json.null, -1, 0, 1.5, 1e300, true, "", "ONESHOT", json.array {}, json.array { 1, "x" }, {},
  json.array { {} }, { ["2"] = json.null }, { ["-2"] = {} } }

-- Calls try() with each value of a document, from its root down, replaced and removed in its turn.
local function with_each_value_odd(document, try)
  for _, key in ipairs(sorted_keys(document)) do
    local original = document[key]
    for _, odd in ipairs(ODD) do
      document[key] = odd
      try()
    end
    document[key] = nil
    try()
    document[key] = original
    if type(original) == "table" and original ~= json.null then with_each_value_odd(original, try) end
  end
end

local TestThresholds = {}

function TestThresholds:setUp() self.folder = scratch.folder("gentables-thresholds") end

function TestThresholds:tearDown() self.folder:remove() end

function TestThresholds:answers(text)
  local path = self.folder.path .. "/thresholds.json"
  fail.unless(file.write(path, text))
  return pcall(lookup.artifact, path, SHAPES, {})
end

function TestThresholds:refuses(text, reason)
  local ok, problem = self:answers(text)
  lu.assertFalse(ok)
  lu.assertTrue(fail.is_failure(problem), tostring(problem))
  lu.assertEquals(problem.code, 2)
  lu.assertStrContains(problem.message, "thresholds.json: ")
  lu.assertStrContains(problem.message, reason)
end

function TestThresholds:test_answers_follow_the_rules()
  local ok, answers, facts = self:answers(TEXT)
  lu.assertTrue(ok, tostring(answers))
  local names = {}
  for i, answer in ipairs(answers) do names[i] = answer.strategy end
  lu.assertEquals(names, { "ONESHOT", "ONESHOT", "TWOSHOT", "TWOSHOT", "MPI" })
  lu.assertEquals({ facts.dtype, facts.op }, { "bfloat16", "allreduce" })
end

function TestThresholds:test_each_odd_value_is_answered_or_refused()
  local document, refused = assert(json.decode(TEXT)), 0
  with_each_value_odd(document, function()
    local ok, problem = self:answers(json.encode(document))
    if ok then return end
    refused = refused + 1
    lu.assertTrue(fail.is_failure(problem), tostring(problem))
  end)
  lu.assertTrue(refused > 100)
end

function TestThresholds:test_reasons()
  local function with(pattern, replacement) return (TEXT:gsub(pattern, replacement, 1)) end
  self:refuses(TEXT:sub(1, -3), "is not JSON")
  self:refuses(with('"version": 1', '"version": 2'), "version 1 is required")
  self:refuses(with('"dtype": "bfloat16"', '"dtype": null'), "a name as dtype is required")
  self:refuses(with('"2": {', '"two": {'), '"two" is no TP size')
  self:refuses(with('"2": {.*$', '"2": [] } }'), "TP size 2: a list of rules is required")
  self:refuses(with('"nodes": {', '"nodes": [], "old": {'), "nodes is no object")
  self:refuses(with('"4": {', '"four": {'), '"four" is no TP size')
  self:refuses(with('"rules": %[ { "max_bytes": null, "strategy": "MPI"', '"rules": [ { "max_bytes": 1'),
    "TP size 4 on 2 nodes, rule 1: the name of a strategy is required")
  self:refuses(with("4096", "-4"), "TP size 2, rule 1: max_bytes must be whole numbers that ascend")
  self:refuses(with("4096", "null"), "TP size 2, rule 1: only the last rule has no max_bytes")
  self:refuses(with('"TWOSHOT"', "7"), "TP size 2, rule 2: the name of a strategy is required")
end

return require "suites" { { "TestThresholds", TestThresholds } }
