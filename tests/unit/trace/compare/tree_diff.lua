-- trace compare: changes between the trees of two traces, at the lowest common ancestor.
local luaunit = require "luaunit"
local rank = require "trace.ops.rank"
local small_trace = require "unit.trace.reports.small_trace"
local tree_diff = require "trace.compare.tree_diff"

-- A trace of steps, each { op, { child, kernel, µs }... }: an op with ops in it that launch a kernel each.
local function write(name, steps, change)
  local trace, at = small_trace.new(), 0
  for _, step in ipairs(steps) do
    local start = at + 1
    local children = {}
    for i = 2, #step do
      at = at + 10
      children[#children + 1] = { step[i], at }
    end
    trace:op(step[1], start, at + 15 - start)
    for _, child in ipairs(children) do
      local op, kernel, time_us = table.unpack(child[1])
      trace:ran(op, child[2], time_us, nil, { kernel = kernel })
    end
    at = at + 20
  end
  if change then change(trace, at) end
  return trace:write(name)
end

local function tree(path) return tree_diff.tree(assert(rank.open(path)).analysis) end

local function diff(a, b) return tree_diff.sheet(tree(a), tree(b), "a", "b") end

-- The columns of a row: ancestor, change, instances, only a, only b, times, difference.
local function rows(sheet)
  local out = {}
  for i, row in ipairs(sheet.rows) do
    out[i] = ("%s %s %d [%s] [%s] %g %g %g"):format(row[1], row[2], row[3], row[4] or "",
      row[5] or "", row[6], row[7], row[8])
  end
  return out
end

local function layer(...) return { "layer", { "aten::mm", "gemm", 10 }, ... } end

local RELU, GELU = { "aten::relu", "relu", 3 }, { "aten::gelu", "gelu", 5 }

local TestTrees = {}

function TestTrees.test_equal_traces_have_no_change()
  local path = write("same", { layer(RELU), layer(RELU) })
  luaunit.assertEquals(diff(path, path).rows, {})
end

function TestTrees.test_what_was_added_removed_or_replaced_is_at_its_ancestor()
  local a = write("a", { layer(RELU), layer(RELU), { "head", { "aten::mm", "gemm", 20 }, RELU } })
  local b = write("b", { layer(GELU), layer(GELU), { "head", { "aten::mm", "gemm", 20 } },
    { "tail", { "aten::sum", "reduce", 1 } } })
  luaunit.assertEquals(rows(diff(a, b)), { "layer replaced 2 [2 x aten::relu] [2 x aten::gelu] 6 10 4",
    "head removed 1 [aten::relu] [] 3 0 -3", "thread 1 added 1 [] [tail] 0 1 1" })
end

function TestTrees.test_matching_kernels_are_slower_or_faster()
  local a = write("slow_a", { layer(RELU), layer(RELU) })
  local b = write("slow_b", { layer(RELU),
    { "layer", { "aten::mm", "gemm", 14 }, { "aten::relu", "relu", 2 } } })
  luaunit.assertEquals(rows(diff(a, b)),
    { "aten::mm slower 2 [] [] 20 24 4", "aten::relu faster 2 [] [] 6 5 -1" })
  luaunit.assertEquals(diff(a, b).rows[1][10], "thread 1 > layer > aten::mm")
  luaunit.assertAlmostEquals(diff(a, b).rows[1][9], 20, 1e-9)
end

function TestTrees.test_another_kernel_replaces_the_one_of_the_same_op()
  local a = write("kernel_a", { layer() })
  local b = write("kernel_b", { { "layer", { "aten::mm", "nvjet", 8 } } })
  luaunit.assertEquals(rows(diff(a, b)), { "aten::mm replaced 1 [gemm] [nvjet] 10 8 -2" })
end

function TestTrees.test_an_inserted_layer_moves_no_other()
  local layers = { layer(RELU), layer(GELU), layer(RELU) }
  local a = write("few", layers)
  table.insert(layers, 2, { "adapter", { "aten::mm", "gemm", 7 } })
  luaunit.assertEquals(rows(diff(a, write("more", layers))), { "thread 1 added 1 [] [adapter] 0 7 7" })
end

function TestTrees.test_calls_and_events_outside_of_ops()
  local function graph(duration)
    return function(trace, at)
      trace:launch(at, duration, { runtime = "cudaGraphLaunch", kernel = "in_graph" })
      trace:kernel(9000, duration, { kernel = "lone" })
    end
  end
  local a, b = write("graph_a", { layer() }, graph(4)), write("graph_b", { layer() }, graph(6))
  luaunit.assertEquals(rows(diff(a, b)), { "cudaGraphLaunch slower 1 [] [] 4 6 2",
    "GPU events without a launch slower 1 [] [] 4 6 2" })
end

-- Long lists are aligned in parts.
function TestTrees.test_differences_add_up_in_long_lists()
  math.randomseed(3)
  local function random_steps()
    local out, names = {}, { "a", "b", "c", "d" }
    for i = 1, 1500 do
      out[i] = { names[math.random(4)], { "aten::mm", "gemm", math.random(9) } }
    end
    return out
  end
  local a, b = tree(write("long_a", random_steps())), tree(write("long_b", random_steps()))
  local sheet, sum, matched = tree_diff.sheet(a, b, "a", "b"), 0, 0
  for _, row in ipairs(sheet.rows) do
    sum = sum + row[8]
    if row[2] ~= "replaced" then matched = matched + row[3] end
  end
  luaunit.assertAlmostEquals(sum, b.time - a.time, 1e-6)
  luaunit.assertTrue(matched > 800) -- random lists of four names have about 0.65 * 1500 in common
end

return require "suites" { { "TestTrees", TestTrees } }
