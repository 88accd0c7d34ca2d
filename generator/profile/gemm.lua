-- FLOPs of GEMM operations from the shapes of their inputs: 2 * M * N * K, times the batch.
--
--   gemm.sums(gemms) -> { flops, calls, without_shapes }
--
-- `gemms` are those of activity.lua. If an operation runs inside another one on the same thread, only the
-- outer one counts: they are the same GEMM.
local gemm = {}

-- The arguments that are the factors.
local factors = { ["aten::mm"] = { 1, 2 }, ["aten::addmm"] = { 2, 3 }, ["aten::bmm"] = { 1, 2 },
  ["aten::baddbmm"] = { 2, 3 }, ["aten::_scaled_mm"] = { 1, 2 } }

-- FLOPs of one operation; nil if its shapes are missing, or are not those of a product.
function gemm.flops(operation)
  local indices = factors[operation.name]
  local a, b = operation.dims and operation.dims[indices[1]], operation.dims and operation.dims[indices[2]]
  if not a or not b or #a ~= #b or #a < 2 or #a > 3 then return nil end
  local batch = #a == 3 and a[1] or 1
  if #a == 3 and a[1] ~= b[1] or a[#a] ~= b[#b - 1] then return nil end
  return 2 * batch * a[#a - 1] * a[#a] * b[#b]
end

function gemm.sums(gemms)
  local sum, calls, without, busy_until = 0, 0, 0, {}
  for _, operation in ipairs(gemms) do -- by start
    local until_then = busy_until[operation.thread]
    if not until_then or operation.start >= until_then then
      busy_until[operation.thread] = operation.stop
      local flops = gemm.flops(operation)
      calls = calls + 1
      if flops then sum = sum + flops else without = without + 1 end
    end
  end
  return { flops = sum, calls = calls, without_shapes = without }
end

return gemm
