-- The parts of a workload's step: for the shipped workloads and for others, on several numbers of ranks,
-- nothing is sent before it is computed, nothing is read before it has arrived, and the backward pass is
-- twice the forward one.
local luaunit = require "luaunit"
local description = require "workload.description"
local steps = require "workload.steps"

local function fields_of(line)
  local fields = {}
  for name, value in line:gmatch(" (%w+)=(%S+)") do fields[name] = value end
  return fields
end

local function sum(list) -- of "1,2,3", which stand for one rank each; a single one for all
  local total, count = 0, 0
  for number in list:gmatch("%d+") do total, count = total + tonumber(number), count + 1 end
  return total, count
end

-- Goes through the actions as a rank would, and asserts that each is possible at that point.
local function walk(program)
  local posted, done, written = {}, {}, {}
  local needs = {} -- collective -> GEMMs that fill what it sends
  for i, line in ipairs(program.gemms) do
    local into = fields_of(line).into
    if into then
      local number = into:match("^%d+")
      needs[number] = needs[number] or {}
      table.insert(needs[number], tostring(i - 1))
    end
  end
  for _, line in ipairs(program.actions) do
    local action = fields_of(line)
    if action.post then
      luaunit.assertNil(posted[action.post], line)
      for _, gemm in ipairs(needs[action.post] or {}) do luaunit.assertTrue(written[gemm], line) end
      posted[action.post] = true
    elseif action.await then
      luaunit.assertTrue(posted[action.await], line)
      done[action.await] = true
    else
      local gemm = fields_of(program.gemms[tonumber(action.gemm) + 1])
      for _, place in ipairs { gemm.a or "", gemm.b or "" } do
        local number = place:match("^%d+")
        if number then luaunit.assertTrue(done[number], line) end
      end
      if gemm.into then luaunit.assertNil(posted[gemm.into:match("^%d+")], line) end
      written[action.gemm] = true
    end
  end
  for i, line in ipairs(program.collectives) do luaunit.assertTrue(posted[tostring(i - 1)], line) end
  for i, line in ipairs(program.gemms) do luaunit.assertTrue(written[tostring(i - 1)], line) end
end

-- FLOPs of a phase over all ranks.
local function flops(program, phase, ranks)
  local total = 0
  for _, line in ipairs(program.gemms) do
    local gemm = fields_of(line)
    if gemm.phase == phase then
      local m, counted = sum(gemm.m)
      local k, k_counted = sum(gemm.k)
      local times = (counted == 1 and k_counted == 1) and ranks or 1
      total = total + 2 * m * tonumber(gemm.n) * k * times
    end
  end
  return total
end

-- A rank's entry of "1,2,3"; a single one is every rank's.
local function of_rank(list, rank)
  local numbers = {}
  for number in list:gmatch("%d+") do numbers[#numbers + 1] = tonumber(number) end
  return numbers[rank] or numbers[1]
end

-- The time of the step for ranks that compute a FLOP in a unit of time, with free transfers, so that they
-- lose time only by waiting for each other; of the slowest rank. `serial`: each collective is waited for.
local function ideal_time(program, ranks, serial)
  local clocks, ready = {}, {} -- ready: when the last rank has handed it over
  for rank = 1, ranks do clocks[rank] = 0 end
  for _, line in ipairs(program.actions) do
    local action = fields_of(line)
    local gemm = action.gemm and fields_of(program.gemms[tonumber(action.gemm) + 1])
    for rank = 1, ranks do
      if gemm then
        clocks[rank] = clocks[rank] + 2 * of_rank(gemm.m, rank) * tonumber(gemm.n) * of_rank(gemm.k, rank)
      elseif action.post then
        ready[action.post] = math.max(ready[action.post] or 0, clocks[rank])
      end
    end
    for rank = 1, ranks do
      local awaited = action.await or serial and action.post
      if awaited then clocks[rank] = math.max(clocks[rank], ready[awaited]) end
    end
  end
  local slowest = math.max(table.unpack(clocks))
  for _, time in pairs(ready) do slowest = math.max(slowest, time) end
  return slowest
end

-- "name:dtype:elements ..." of a program's collectives.
local function collectives_of(program)
  local out = {}
  for i, line in ipairs(program.collectives) do
    local fields = fields_of(line)
    out[i] = ("%s:%s:%s"):format(fields.name, fields.dtype, fields.elements or fields.matrix)
  end
  return table.concat(out, " ")
end

local function parsed(text) return description.parse("return " .. text, "test.lua") end

local TestSteps = {}

function TestSteps.test_shipped_workloads_are_possible_on_any_ranks()
  for _, name in ipairs(description.shipped) do
    local workload = description.load(name)
    luaunit.assertEquals(workload.steps, 20)
    for _, ranks in ipairs { 2, 3, 4, 8 } do
      local program = steps.of(workload, ranks, "host")
      walk(program)
      luaunit.assertEquals(flops(program, "backward", ranks), 2 * flops(program, "forward", ranks), name)
    end
  end
end

function TestSteps.test_loads_go_round_and_all_tokens_arrive()
  local program = steps.of(description.load("moe"), 2, "host")
  local seen = {}
  for _, line in ipairs(program.gemms) do
    local gemm = fields_of(line)
    if gemm.name:find("expert.up") and gemm.phase == "forward" then seen[#seen + 1] = gemm.m end
  end
  luaunit.assertEquals(seen, { "128,256", "256,128", "128,256", "256,128" })
  for _, line in ipairs(program.collectives) do
    local collective = fields_of(line)
    if collective.kind == "all_to_all" then
      luaunit.assertEquals(sum(collective.matrix), 2 * 192 * 512, collective.name)
    end
  end
end

function TestSteps.test_uneven_loads_that_change_places_cost_waiting_in_serial_steps_alone()
  local program = steps.of(description.load("moe"), 2, "host")
  local gemms = (flops(program, "forward", 2) + flops(program, "backward", 2)) // 2
  luaunit.assertEquals(ideal_time(program, 2), gemms)
  luaunit.assertTrue(ideal_time(program, 2, true) > 1.2 * gemms)
end

-- Data that no GEMM computes is sent for all micro-batches before the first of them is computed.
function TestSteps.test_available_data_are_sent_before_anything_is_computed()
  local program = steps.of(parsed [[{ name = "x", tokens = 12, micro_batches = 2, layers = {
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "g", n = 4, k = 4 } } } } }]], 2, "host")
  walk(program)
  local names = {}
  for i, line in ipairs(program.actions) do
    local action = fields_of(line)
    local number = action.post or action.await
    names[i] = number and ("%s %s"):format(action.post and "post" or "await",
      fields_of(program.collectives[tonumber(number) + 1]).name) or "gemm"
  end
  luaunit.assertEquals(table.concat(names, "; "), "post e.dispatch.1; post e.dispatch.2; await e.dispatch.1; "
    .. "gemm; post e.combine.1; await e.dispatch.2; gemm; post e.combine.2; await e.combine.1; "
    .. "post e.gradient_dispatch.1; await e.combine.2; post e.gradient_dispatch.2; "
    .. "await e.gradient_dispatch.1; gemm; gemm; post e.gradient_combine.1; await e.gradient_dispatch.2; "
    .. "gemm; gemm; post e.gradient_combine.2")
end

function TestSteps.test_tokens_that_do_not_divide_are_all_sent()
  local program = steps.of(parsed [[{ name = "x", tokens = 10, layers = { { name = "e",
    experts = { load = { 1, 1, 1 } }, gemms = { { name = "g", n = 4, k = 1 } } } } }]], 3, "host")
  luaunit.assertEquals(fields_of(program.collectives[1]).matrix, "4,3,3,4,3,3,4,3,3")
  luaunit.assertEquals(fields_of(program.collectives[2]).matrix, "16,16,16,12,12,12,12,12,12")
  luaunit.assertEquals(fields_of(program.gemms[1]).m, "12,9,9")
end

function TestSteps.test_buckets_close_when_they_are_full_and_are_sent_at_once()
  local program = steps.of(parsed [[{ name = "x", tokens = 8, gradients = { bucket_bytes = 300 },
    layers = { { name = "l", copies = 3, gemms = { { name = "g", n = 8, k = 5 } } } } }]], 2, "host")
  luaunit.assertEquals(#program.collectives, 2)
  luaunit.assertEquals(fields_of(program.collectives[1]).elements, "80")
  luaunit.assertEquals(fields_of(program.collectives[2]).elements, "40")
  luaunit.assertEquals(table.concat(program.actions, "; "), "do gemm=0; do gemm=1; do gemm=2; do gemm=3; "
    .. "do gemm=4; do gemm=5; do gemm=6; do post=0; do gemm=7; do gemm=8; do post=1")
end

-- A dtype's gradients wait for others of the same dtype; gradients of another dtype between them do not
-- count.
function TestSteps.test_each_dtype_fills_buckets_of_its_own()
  local program = steps.of(parsed [[{ name = "x", tokens = 8, gradients = { bucket_bytes = 300 },
    layers = { { name = "l", copies = 4, gemms = { { name = "g", n = 8, k = 10, dtype = "float16" },
      { name = "router", n = 3, k = 8 } } } } }]], 2, "host")
  walk(program)
  luaunit.assertEquals(collectives_of(program), "bucket1:float16:160 bucket2:float32:96 bucket3:float16:160")
  local posts, after = {}, 0
  for _, line in ipairs(program.actions) do
    local action = fields_of(line)
    after = tonumber(action.gemm) or after
    if action.post then
      posts[#posts + 1] = action.post .. " after " .. fields_of(program.gemms[after + 1]).name
    end
  end
  luaunit.assertEquals(table.concat(posts, "; "), "0 after l3.g; 1 after l1.router; 2 after l1.g")
end

function TestSteps.test_a_gemm_has_its_own_dtype_or_the_workloads()
  local workload = parsed [[{ name = "x", tokens = 8, dtype = { host = "float32", cuda = "bfloat16" },
    layers = { { name = "l", gemms = { { name = "a", n = 8, k = 5 },
      { name = "b", n = 8, k = 5, dtype = "float16" },
      { name = "c", n = 8, k = 5, dtype = { cuda = "float32" } } } } } }]]
  for backend, expected in pairs { host = "float32 float16 float32", cuda = "bfloat16 float16 float32" } do
    local found = {}
    for i = 1, 3 do found[i] = fields_of(steps.of(workload, 2, backend).gemms[i]).dtype end
    luaunit.assertEquals(table.concat(found, " "), expected)
  end
end

function TestSteps.test_tokens_travel_as_the_gemm_at_their_end_has_them()
  local program = steps.of(parsed [[{ name = "x", tokens = 4, layers = { { name = "e",
    experts = { load = { 1 } }, gemms = { { name = "up", n = 3, k = 1, dtype = "bfloat16" },
      { name = "down", n = 1, k = 3, dtype = "float16" } } } } }]], 2, "host")
  walk(program)
  luaunit.assertEquals(collectives_of(program), "e.dispatch.1:bfloat16:2,2,2,2 e.combine.1:float16:2,2,2,2 "
    .. "e.gradient_dispatch.1:float16:2,2,2,2 e.gradient_combine.1:bfloat16:2,2,2,2")
end

function TestSteps.test_spread_weights_of_each_dtype_are_gathered_by_themselves()
  local program = steps.of(parsed [[{ name = "x", tokens = 8, gradients = { collective = "reduce_scatter" },
    layers = { { name = "l", copies = 2, gemms = { { name = "g", n = 3, k = 5 },
      { name = "h", n = 2, k = 3, dtype = "bfloat16", backward = false } } } } }]], 2, "host")
  walk(program)
  luaunit.assertEquals(collectives_of(program), "l1.gather.fp32:float32:8 l1.gather_again.fp32:float32:8 "
    .. "l1.scatter.fp32:float32:8 l1.gather.bf16:bfloat16:3 l1.gather_again.bf16:bfloat16:3 "
    .. "l2.gather.fp32:float32:8 l2.gather_again.fp32:float32:8 l2.scatter.fp32:float32:8 "
    .. "l2.gather.bf16:bfloat16:3 l2.gather_again.bf16:bfloat16:3")
  luaunit.assertEquals(table.concat(program.actions, "; ", 1, 10), "do post=0; do post=3; do post=5; "
    .. "do post=8; do await=0; do await=3; do gemm=0; do gemm=1; do await=5; do await=8")
end

function TestSteps.test_spread_weights_are_gathered_one_layer_ahead()
  local program = steps.of(parsed [[{ name = "x", tokens = 8, gradients = { collective = "reduce_scatter" },
    layers = { { name = "l", copies = 2, gemms = { { name = "g", n = 3, k = 5 } } } } }]], 2, "host")
  walk(program)
  luaunit.assertEquals(fields_of(program.collectives[1]).elements, "8") -- 15 elements over 2 ranks
  luaunit.assertEquals(table.concat(program.actions, "; ", 1, 6),
    "do post=0; do post=3; do await=0; do gemm=0; do await=3; do gemm=1")
end

function TestSteps.test_gradients_add_up_over_micro_batches()
  local program = steps.of(parsed [[{ name = "x", tokens = 8, micro_batches = 2,
    layers = { { name = "l", gemms = { { name = "g", n = 3, k = 5 } } } } }]], 2, "host")
  walk(program)
  local accumulating = {}
  for i, line in ipairs(program.gemms) do accumulating[i] = fields_of(line).accumulate or "0" end
  luaunit.assertEquals(table.concat(accumulating), "000001")
end

-- Tables, and not the request lines of gentables-workload.
function TestSteps.test_show_prints_tables()
  local handle <close> = assert(io.popen(("'%s' workload show -f moe -p 3"):format(os.getenv("GENTABLES"))))
  local text = handle:read("a"):gsub(" +", " ")
  for _, line in ipairs { "number phase name m n k layout dtype",
    " 2 forward attention1.router 192 8 512 NT float32",
    " 1 backward experts2.expert.down 512 2048 144,288,144 TN float32", "kind name elements dtype",
    "all_to_all experts1.dispatch.1 98304 float32", "allreduce bucket1 266240 float32",
    "all_to_all experts1.combine.1 73728,147456,73728 float32" } do
    luaunit.assertStrContains(text, "\n" .. line .. "\n")
  end
  luaunit.assertNotStrContains(text, "begin name")
end

return require "suites" { { "TestSteps", TestSteps } }
