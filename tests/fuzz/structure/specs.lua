-- Jobs that read a Lua file of the user: specs of sweeps and tables, workloads.
local liar = require "fuzz.structure.liar"
local tokens = require "fuzz.structure.tokens"
local trial = require "fuzz.structure.trial"

-- A file without its comments, which would take most of the mutants.
local function read(name) return (trial.text(name):gsub("%-%-[^\n]*", "")) end

local job = trial.mutated_by(tokens.mutator { "nil", "{}", "{ {} }", "true", "function() end", "0/0", "1/0",
  "-1", "1e999",
  'error("x")', "error({})", "error()", "(('x'):rep(1e9))", "(('x'):rep(9))", "setmetatable({}, {})",
  "while true do end", "return", "...", "local t = {} t[1] = t", "(function() return 1, 2 end)()", "_G",
  "_ENV",
  "[[ ]]", "-- ", "--[[", "goto x", "::x::", "x.y.z", "#", "math.huge", "string", "load", "require('os')",
  "arch = 7", "tp = {}", "tp = { 2, nil, 4 }", "limits = { seconds = 1 }", "limits = { launches = 9999999 }",
  "num_tokens = { 1, 1 }", "hidden_sizes = { 1 << 62 }", "strategies = { 'AUTO' }", "copies = 1000",
  "experts = { load = { 1, 0 } }", "tokens = 1 << 20", "table = {}", "choice = {}" })

local rows, own_spec = read("tests/golden/sm90/benchmark.tp2.sm90.csv"), read("tables/sm90-loopback/spec.lua")
local spec_of_table = own_spec:gsub("sm90%-loopback", "sm90")

return {
  job({ "sweep", "sweep", "in/spec.lua", "--out", "out/rows", "--budget", "3", "--patience", "2",
    "--bench", os.getenv("STAND_IN"), "--launcher", "env RANKS={ranks}", partial = true },
    { ["in/spec.lua"] = liar.spec }, "in/spec.lua"),
  job({ "sweep of tables", "sweep", "in/spec.lua", "--out", "out/rows", "--budget", "15", "--patience", "2",
    "--bench", os.getenv("STAND_IN"), "--launcher", "env RANKS={ranks}", partial = true, nightly = true },
    { ["in/spec.lua"] = read("tables/host/spec.lua") }, "in/spec.lua"),
  job({ "generate", "generate", "--data-dir", "in/rows", "--arch", "sm90", "--out", "out/tables" },
    { ["in/rows/benchmark.tp2.sm90.csv"] = rows, ["in/rows/spec.lua"] = spec_of_table }, "in/rows/spec.lua"),
  job({ "workload", "workload", "show", "-f", "in/w.lua", "-p", "2" },
    { ["in/w.lua"] = read("workloads/small.lua") }, "in/w.lua"),
  job({ "experts", "workload", "show", "-f", "in/w.lua", "-p", "4" },
    { ["in/w.lua"] = read("workloads/moe.lua") }, "in/w.lua"),
}
