-- spec.lua: the valid content of a spec; errors are reported with file and line.
local lu = require "luaunit"
local failure = require "failure"
local file = require "core.file"
local spec = require "rows.spec"

local TestSpec = {}

function TestSpec:setUp() self.path = os.tmpname() end
function TestSpec:tearDown() os.remove(self.path) end

function TestSpec:load(text)
  assert(file.write(self.path, text))
  return spec.load(self.path)
end

-- The message with which `text` is rejected, without the file's name.
function TestSpec:refusal(text)
  local message, code = failure(self.load, self, text)
  lu.assertEquals({ code, message:sub(1, #self.path + 1) }, { 2, self.path .. ":" })
  return message:sub(#self.path + 2)
end

local least = 'arch = "host", tp = { 4, 2 }, hidden_sizes = { 1024 }, num_tokens = { 16, 1 }'

function TestSpec:test_cells_that_the_bench_cannot_measure_are_rejected_with_their_line()
  local function refused(line, key_and_value, words)
    local message = self:refusal("return { " .. least .. ",\n" .. key_and_value .. " }")
    lu.assertStrMatches(message, line .. ": .*" .. words .. ".*")
  end
  refused(2, 'strategies = { "NCCL" }', "NCCL, which host does not measure; valid: MPI, ONESHOT")
  refused(2, 'table = { op = "gemm_allreduce" }', "host does not measure the op gemm_allreduce")
  refused(2, 'table = { mode = "graph" }', "host does not measure the mode graph")
  refused(2, "limits = { max_samples = 1 << 62 }", "from 1 to 1000000")
end

function TestSpec:test_a_byte_order_mark_is_skipped()
  lu.assertEquals(self:load("\239\187\191return { " .. least .. " }").tp, { 2, 4 })
end

function TestSpec:test_no_value_of_a_list_is_lost()
  local message = self:refusal('return { arch = "host", tp = { 2, nil, 4 } }')
  lu.assertEquals(message, "1: tp has nil in place 2; remove it")
end

function TestSpec:test_missing_fields_have_defaults()
  local found = self:load("return { " .. least .. " }")
  lu.assertEquals(found.tp, { 2, 4 })
  lu.assertEquals(found.num_tokens, { 1, 16 })
  lu.assertEquals(found.dtypes, { "bfloat16" })
  lu.assertEquals(#found.fusions, 4)
  lu.assertEquals(found.strategies[1], "MPI")
  lu.assertNotStrContains(table.concat(found.strategies, " "), "NCCL")
  lu.assertEquals(found.limits, spec.default_limits)
  lu.assertEquals(found.table, spec.default_table)
end

function TestSpec:test_aliases_become_names_in_the_order_of_the_lists()
  local found = self:load("return { " .. least .. ', dtypes = { "fp32", "bf16" } }')
  lu.assertEquals(found.dtypes, { "bfloat16", "float32" })
end

function TestSpec:test_the_table_takes_a_dtype_that_is_swept()
  lu.assertEquals(self:load("return { " .. least .. ', dtypes = { "float16" } }').table.dtype, "float16")
  local refusal = self:refusal("return { " .. least .. ', table = { dtype = "float32" } }')
  lu.assertStrContains(refusal, "not among dtypes")
end

function TestSpec.test_the_shipped_spec_is_right()
  local found = spec.load(gentables.home .. "/generator/../tables/host/spec.lua")
  lu.assertEquals(found.arch, "host")
end

function TestSpec:test_an_unknown_key_is_reported_with_its_line()
  lu.assertStrMatches(self:refusal("return {\n  " .. least .. ",\n  hiden_sizes = { 3 },\n}"),
    '3: unknown key "hiden_sizes"; valid keys: arch, .*')
  lu.assertStrMatches(self:refusal("return {\n" .. least .. ",\nlimits = {\n  cell_ms = 3 } }"),
    '4: unknown key "cell_ms" in limits; .*')
  lu.assertStrMatches(self:refusal("return {\n" .. least .. ",\n['two words'] = 1 }"),
    '3: unknown key "two words.*')
end

function TestSpec:test_a_key_in_a_comment_is_not_its_line()
  lu.assertStrMatches(self:refusal("-- tp = { 1 }\nreturn {\n tp = { 1 } }"), "3: tp has 1; .*")
end

function TestSpec:test_wrong_values_are_refused()
  local base = 'return {\narch = "host", tp = %s, hidden_sizes = %s, num_tokens = %s,\nstrategies = %s }'
  local good = { "{ 2 }", "{ 64 }", "{ 1 }", '{ "MPI" }' }
  local cases = {
    { 1, "{ 1 }", "2: tp has 1; valid are whole numbers from 2 to 512" },
    { 1, "{ 513 }", "2: tp has 513;" },
    { 1, "{ 2, 17 }", "2: tp has 17; one node has 16 ranks at most, and more need nodes = { ... }" },
    { 1, "{ 2.5 }", "2: tp has 2.5;" },
    { 1, "{ 2, 2 }", "2: tp has 2 twice" },
    { 1, "{}", "2: tp is empty" }, { 1, "2", "2: tp is not a list" }, { 1, '{ "2" }', "2: tp has 2;" },
    { 1, "{ 2, x = 4 }", "2: tp is a list; remove the key x" },
    { 2, "{ 0 }", "2: hidden_sizes has 0;" }, { 3, "{ -4 }", "2: num_tokens has -4;" },
    { 3, "{ 0/0 }", "2: num_tokens has" },
    { 4, '{ "ONSHOT" }', "3: strategies has ONSHOT; valid: MPI, ONESHOT" },
    { 4, "{ 7 }", "3: strategies has 7" },
    { 4, '{ "MPI", "MPI" }', "3: strategies has MPI twice" },
  }
  for _, case in ipairs(cases) do
    local values = { table.unpack(good) }
    values[case[1]] = case[2]
    lu.assertStrContains(self:refusal(base:format(table.unpack(values))), case[3])
  end
end

function TestSpec:test_sizes_may_have_a_unit()
  local found = self:load('return { arch = "host", tp = { 2 }, hidden_sizes = { "4K", 64 }, '
    .. 'num_tokens = { 1 }, limits = { message_bytes = "8M" } }')
  lu.assertEquals({ found.limits.message_bytes, found.hidden_sizes }, { 8 << 20, { 64, 4096 } })
  lu.assertStrContains(self:refusal("return {" .. least .. ',\nlimits = { message_bytes = "8Q" } }'),
    "2: message_bytes is 8Q; valid is a whole number")
end

function TestSpec:test_limits_are_whole_and_in_order()
  local function refusal(limits)
    return self:refusal("return {\n" .. least .. ",\nlimits = " .. limits .. "}")
  end
  lu.assertStrContains(refusal("{ cell_us = 0 }"), "3: cell_us is 0")
  lu.assertStrContains(refusal("{ min_samples = 9, max_samples = 8 }"), "3: min_samples is 9, above")
end

function TestSpec:test_placements_are_the_even_ones_of_ranks_and_nodes()
  local found = self:load("return { " .. least .. ", nodes = { 4, 1, 2 } }")
  local placements, skipped = spec.placements(found)
  lu.assertEquals(placements, {
    { world_size = 2, nodes = 1, ranks_per_node = 2 }, { world_size = 4, nodes = 1, ranks_per_node = 4 },
    { world_size = 2, nodes = 2, ranks_per_node = 1 }, { world_size = 4, nodes = 2, ranks_per_node = 2 },
    { world_size = 4, nodes = 4, ranks_per_node = 1 } })
  lu.assertEquals(skipped,
    { { world_size = 2, nodes = 4, reason = "2 ranks do not divide among 4 nodes" } })
  found = self:load("return { " .. least .. ", ranks_per_node = 2, nodes = { 1, 2 } }")
  placements, skipped = spec.placements(found)
  lu.assertEquals(placements, { { world_size = 2, nodes = 1, ranks_per_node = 2 },
    { world_size = 4, nodes = 2, ranks_per_node = 2 } })
  lu.assertEquals({ skipped[1].reason, skipped[2].reason }, {
    "1 node with ranks_per_node = 2 has 2 ranks", "2 nodes with ranks_per_node = 2 have 4 ranks" })
  lu.assertEquals(spec.placements(self:load("return { " .. least .. " }")), {
    { world_size = 2, nodes = 1, ranks_per_node = 2 }, { world_size = 4, nodes = 1, ranks_per_node = 4 } })
end

function TestSpec:test_placements_of_many_ranks_have_at_most_16_on_each_node()
  local found = self:load('return { arch = "host", tp = { 16, 20, 64, 512 }, nodes = { 1, 4, 64 }, '
    .. "hidden_sizes = { 1024 }, num_tokens = { 1 } }")
  local placements, skipped = spec.placements(found)
  lu.assertEquals(placements, {
    { world_size = 16, nodes = 1, ranks_per_node = 16 }, { world_size = 16, nodes = 4, ranks_per_node = 4 },
    { world_size = 20, nodes = 4, ranks_per_node = 5 }, { world_size = 64, nodes = 4, ranks_per_node = 16 },
    { world_size = 64, nodes = 64, ranks_per_node = 1 },
    { world_size = 512, nodes = 64, ranks_per_node = 8 } })
  lu.assertEquals(skipped[1],
    { world_size = 20, nodes = 1, reason = "20 ranks on 1 node; a node has 16 at most" })
  lu.assertEquals(skipped[4],
    { world_size = 512, nodes = 4, reason = "512 ranks on 4 nodes; a node has 16 at most" })
end

function TestSpec:test_nodes_that_no_ranks_fit_are_rejected_with_their_line()
  local function refusal(key_and_value)
    return self:refusal("return {\n" .. least .. ",\n" .. key_and_value .. " }")
  end
  lu.assertStrContains(refusal("nodes = { 8 }"),
    "3: no TP size fits these nodes; tp is nodes x ranks_per_node")
  lu.assertStrContains(refusal("ranks_per_node = 3"), "3: no TP size fits these nodes")
  lu.assertStrContains(refusal("nodes = { 0 }"), "3: nodes has 0; valid are whole numbers from 1 to 512")
  lu.assertStrContains(refusal("nodes = 2"), "3: nodes is not a list; write nodes = { ... }")
  lu.assertStrContains(refusal("ranks_per_node = 1.5"),
    "3: ranks_per_node is 1.5; valid is a whole number from 1 to 16")
end

function TestSpec:test_missing_keys_are_named()
  lu.assertStrContains(self:refusal('return { arch = "host" }'), "1: tp is missing")
  lu.assertStrContains(self:refusal('return { arch = "tpu" }'), "1: unknown arch tpu")
end

function TestSpec:test_a_spec_is_a_table_and_nothing_else()
  lu.assertStrContains(self:refusal("return 5"), "1: returns number")
  lu.assertStrContains(self:refusal(""), "1: returns nil")
  lu.assertStrContains(self:refusal("return {\n tp = = }"), "2: unexpected symbol")
  lu.assertStrContains(self:refusal("\nwhile true do end"), "2: runs too long")
  local doubling = "local s = 'x'\nfor _ = 1, 40 do s = s .. s end\nreturn s"
  lu.assertStrContains(self:refusal(doubling), "2: needs more than 64 MiB")
  lu.assertEquals(self:refusal("return " .. ("{"):rep(100000) .. ("}"):rep(100000)),
    "1: is nested too deeply; a short table is required")
  lu.assertStrContains(self:refusal("os.exit(0)"), "1: attempt to index a nil value")
  lu.assertStrContains(self:refusal("return ('x'):rep(1 << 40)"), "1: attempt to index a string value")
  lu.assertStrContains(self:refusal("\27Lua"), "attempt to load a binary chunk")
end

-- The most memory that this process has had so far, in KiB.
local function peak_kib()
  local status <close> = assert(io.open("/proc/self/status"))
  return tonumber(status:read("a"):match("VmHWM:%s*(%d+) kB"))
end

function TestSpec:test_one_instruction_stays_below_the_limit_of_memory()
  local before, joined = peak_kib(), {}
  for i = 1, 30 do joined[i] = "s" end
  local text = "local s = 'x'\nfor _ = 1, 24 do s = s .. s end\n\nreturn " .. table.concat(joined, " .. ")
  lu.assertStrContains(self:refusal(text), "4: needs more than 64 MiB")
  lu.assertTrue(peak_kib() - before < 96 * 1024, peak_kib() - before)
end

function TestSpec:test_text_still_has_its_methods_afterwards()
  pcall(self.load, self, "error()")
  lu.assertEquals(("x"):rep(2), "xx")
end

function TestSpec.test_a_missing_file_is_reported()
  lu.assertStrContains((failure(spec.load, "/nonexistent/spec.lua")), "/nonexistent/spec.lua")
end

return require "suites" { { "TestSpec", TestSpec } }
