-- The sums behind metrics of GPU activity, by hand: busy time, FLOPs, least squares, matched calls, names.
local collective = require "profile.collective"
local gemm = require "profile.gemm"
local hockney = require "metric.hockney"
local busy_time = require "profile.busy_time"
local luaunit = require "luaunit"
local call_matching = require "profile.call_matching"

local tests = {}

local function list(...)
  local out = { start = {}, stop = {} }
  for i, pair in ipairs { ... } do out.start[i], out.stop[i] = pair[1], pair[2] end
  return out
end

function tests.test_a_union_joins_touching_and_nested_intervals()
  local union = busy_time.union(list({ 0, 10 }, { 2, 3 }, { 5, 12 }, { 12, 13 }, { 20, 20 }, { 30, 31 }))
  luaunit.assertEquals(union, list({ 0, 13 }, { 20, 20 }, { 30, 31 }))
  luaunit.assertEquals(busy_time.sum(union), 14)
  luaunit.assertEquals(busy_time.union(list()), list())
end

function tests.test_sums_and_unions_leave_out_other_events()
  local some = list({ 0, 10 }, { 5, 7 }, { 8, 15 })
  local function not_first(i) return i > 1 end
  luaunit.assertEquals(busy_time.sum(some), 19)
  luaunit.assertEquals(busy_time.sum(some, not_first), 9)
  luaunit.assertEquals(busy_time.union(some, not_first), list({ 5, 7 }, { 8, 15 }))
end

function tests.test_common_time_of_two_unions()
  luaunit.assertEquals(busy_time.common(list({ 0, 10 }, { 20, 30 }), list({ 5, 25 }, { 29, 40 })), 11)
  luaunit.assertEquals(busy_time.common(list({ 0, 10 }), list({ 10, 20 })), 0)
  luaunit.assertEquals(busy_time.common(list({ 0, 10 }), list()), 0)
end

function tests.test_a_span_is_over_all_lists_and_ends_with_the_last_stop()
  luaunit.assertEquals(busy_time.span(list({ 5, 90 }, { 6, 7 }), list(), list({ 3, 4 })), 87)
  luaunit.assertNil(busy_time.span(list(), list()))
end

local function operation(name, start, stop, ...)
  return { name = name, thread = 1, start = start, stop = stop, dims = ... and { ... } }
end

function tests.test_flops_by_the_arguments_that_are_factors()
  local function flops(name, ...) return gemm.flops(operation(name, 0, 1, ...)) end
  luaunit.assertEquals(flops("aten::mm", { 2, 3 }, { 3, 5 }), 60)
  luaunit.assertEquals(flops("aten::addmm", { 5 }, { 2, 3 }, { 3, 5 }, {}, {}), 60)
  luaunit.assertEquals(flops("aten::bmm", { 7, 2, 3 }, { 7, 3, 5 }), 420)
  luaunit.assertEquals(flops("aten::baddbmm", { 7, 2, 5 }, { 7, 2, 3 }, { 7, 3, 5 }), 420)
  luaunit.assertEquals(flops("aten::_scaled_mm", { 16, 32 }, { 32, 64 }, {}, {}), 65536)
end

function tests.test_shapes_of_no_product_have_no_flops()
  for _, dims in ipairs { { { 2, 3 }, { 4, 5 } }, { { 2, 3 }, {} }, { {}, {} }, { { 3 }, { 3 } },
    { { 2, 3 } }, { { 7, 2, 3 }, { 6, 3, 5 } }, { { 2, 3 }, { 1, 3, 5 } } } do
    luaunit.assertNil(gemm.flops(operation("aten::mm", 0, 1, table.unpack(dims))))
  end
  luaunit.assertNil(gemm.flops(operation("aten::mm", 0, 1)))
end

function tests.test_an_operation_within_another_is_counted_once()
  local a, b = { 2, 3 }, { 3, 5 }
  local other_thread = operation("aten::mm", 12, 13, a, b)
  other_thread.thread = 2
  luaunit.assertEquals(gemm.sums { operation("aten::mm", 10, 20, a, b), operation("aten::mm", 11, 19, a, b),
    other_thread, operation("aten::mm", 20, 30, a, b), operation("aten::mm", 40, 50) },
    { flops = 180, calls = 4, without_shapes = 1 })
end

function tests.test_least_squares()
  local alpha, beta, r2 = hockney.fit({ 1, 2, 3 }, { 7, 9, 11 })
  luaunit.assertAlmostEquals(alpha, 5, 1e-12)
  luaunit.assertAlmostEquals(beta, 2, 1e-12)
  luaunit.assertAlmostEquals(r2, 1, 1e-12)
  -- (1, 1), (2, 3), (3, 2): slope 1/2, intercept 1, r = 1/2
  alpha, beta, r2 = hockney.fit({ 1, 2, 3 }, { 1, 3, 2 })
  luaunit.assertAlmostEquals(alpha, 1, 1e-12)
  luaunit.assertAlmostEquals(beta, 0.5, 1e-12)
  luaunit.assertAlmostEquals(r2, 0.25, 1e-12)
  luaunit.assertNil(select(3, hockney.fit({ 1, 2, 3 }, { 4, 4, 4 })))
end

local function call(group, name, bytes, start, stop)
  return { group = group, name = name, bytes = bytes, start = start, stop = stop }
end

local function times(calls)
  local out = {}
  for i, one in ipairs(calls) do out[i] = one.stop - one.start end
  table.sort(out)
  return out
end

function tests.test_of_matched_calls_the_shortest_counts()
  local ranks = {
    { collectives = { call("a", "AllReduce", 8, 0, 10), call("a", "AllReduce", 8, 20, 25) } },
    { collectives = { call("a", "AllReduce", 8, 6, 10), call("a", "AllReduce", 8, 17, 25) } } }
  luaunit.assertEquals(times(call_matching.shortest(ranks)), { 4, 5 })
  luaunit.assertEquals(times(call_matching.all(ranks)), { 4, 5, 8, 10 })
end

function tests.test_calls_that_differ_between_ranks_stay_apart()
  local first = { collectives = { call("a", "AllReduce", 8, 0, 10), call("b", "Broadcast", 4, 0, 2),
    call(nil, "unknown", nil, 0, 3) } }
  for _, other in ipairs { call("a", "AllReduce", 16, 0, 1), call("a", "Broadcast", 8, 0, 1),
    call("c", "AllReduce", 8, 0, 1) } do
    luaunit.assertEquals(times(call_matching.shortest { first, { collectives = { other } } }),
      { 1, 2, 3, 10 })
  end
  local more = { collectives = { call("a", "AllReduce", 8, 0, 1), call("a", "AllReduce", 8, 0, 1) } }
  luaunit.assertEquals(times(call_matching.shortest { first, more }), { 1, 1, 2, 3, 10 })
end

local function facts_of(name, in_elements, out_elements, dtype)
  return { name = name, dtype = dtype, group = "0", group_size = 4, in_elements = in_elements,
    out_elements = out_elements }
end

function tests.test_collectives_by_kernel_and_by_metadata()
  local function name_of(kernel, metadata) return collective.describe(kernel, metadata).name end
  luaunit.assertEquals(name_of "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "ReduceScatter")
  luaunit.assertEquals(name_of "ncclDevKernel_Reduce_Sum_f32_TREE_LL(x)", "Reduce")
  luaunit.assertEquals(name_of "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", "SendRecv")
  luaunit.assertEquals(name_of "void vllm::cross_device_reduce_1stage<bf16, 4>(x)", "AllReduce")
  luaunit.assertEquals(name_of "ncclDevKernel_Generic(AllReduce)", "unknown")
  for metadata, name in pairs { _allgather_base = "AllGather", _reduce_scatter_base = "ReduceScatter",
    all_to_allv = "AllToAll", allreduce_coalesced = "AllReduce", recv = "SendRecv" } do
    luaunit.assertEquals(name_of("ncclDevKernel_SendRecv(x)", facts_of(metadata, 1, 1, "Float")), name)
  end
end

function tests.test_bytes_are_of_the_full_message_if_metadata_has_them()
  local function bytes_of(...) return collective.describe("ncclDevKernel_Generic(x)", facts_of(...)).bytes end
  luaunit.assertEquals(bytes_of("allreduce", 10, 10, "BFloat16"), 20)
  luaunit.assertEquals(bytes_of("_allgather_base", 10, 40, "c10::Half"), 80)
  luaunit.assertEquals(bytes_of("_reduce_scatter_base", 40, 10, "Float"), 160)
  luaunit.assertNil(bytes_of("allreduce", 10, 10, "Sparse"))
  luaunit.assertNil(bytes_of("allreduce", -1, 10, "Float"))
  luaunit.assertNil(collective.describe("ncclDevKernel_AllReduce_Sum", nil).bytes)
end

function tests.test_bus_factors_are_those_of_nccl_tests()
  luaunit.assertEquals(collective.bus_factor("AllReduce", 8), 1.75)
  luaunit.assertEquals(collective.bus_factor("AllToAll", 4), 0.75)
  luaunit.assertEquals(collective.bus_factor("Broadcast", 4), 1.0)
  luaunit.assertNil(collective.bus_factor("AllReduce", nil))
  luaunit.assertNil(collective.bus_factor("unknown", 4))
end

return require "suites" { { "activity", tests } }
