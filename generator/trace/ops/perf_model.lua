-- The work of an op, from its shapes: FLOPs and bytes, one function per family of families.lua, in the files
-- *_model.lua. Called once per distinct op and arguments, never per event.
--
--   perf_model.of(op, call) -> { params = { { name, value }, ... }, flops, bytes, spec } | nil, reason
--   perf_model.backward_of(op, call) -> the same for its backward; nil: it has no model
--
-- `op` is a row of families.lua; call = { dims, types, strides, concrete, kernels }: the first four are of
-- the arguments (lists; codec/python_literals.lua reads them), kernels() returns the names of the kernels.
-- bytes and spec are nil if the width or the precision of a type is unknown. Values of params are those of
-- codec/python_literals.lua.
--
-- How to add a file of models: FILE.lua, which returns { models = { [family] = function(op, call) },
-- backward = { the same, for backward_of } }, and its name in `files`. An op that only has other arguments
-- needs a row of ops_list.lua alone.
local fail = require "base.fail"
local python_literals = require "codec.python_literals"
local sequences = require "base.sequences"

local none = python_literals.none
local perf_model = {}

perf_model.NO_SHAPES = "shapes are missing"

local files = { "gemm_model", "attention_model", "convolution_model", "elementwise_model", "reduction_model",
  "norm_model", "indexing_model", "layer_model" }

local sums, backward_sums = {}, {}
for _, name in ipairs(files) do
  local file = require("trace.ops." .. name)
  for family, model in pairs(file.models) do sums[family] = model end
  for family, model in pairs(file.backward or {}) do backward_sums[family] = model end
end

local function is_near(a, b) return a == b or (a and b and math.abs(a - b) <= 1e-9 * math.abs(b)) or false end

local function is_true_sum(value) return value == nil or (value >= 0 and value < math.huge) end

-- Arguments of another type than in the op's schema (a text for a number, a list for a text) raise an error
-- of Lua: they do not fit. With absurd shapes sums of integers wrap around, but sums of doubles do not;
-- comparing both detects this.
local function checked(model_of, op, call)
  local fits, perf, why = pcall(model_of, op, call)
  if not fits then
    fail.pass_on(perf)
    return nil, "the arguments do not fit"
  end
  if not perf then return nil, why end
  local in_doubles = setmetatable({ in_doubles = true }, { __index = call })
  local again, doubles = pcall(model_of, op, in_doubles)
  if not again then fail.pass_on(doubles) end
  if not again or not doubles or not is_near(perf.flops, doubles.flops)
    or not is_near(perf.bytes, doubles.bytes) then
    return nil, "the shapes are too large"
  end
  if not is_true_sum(perf.flops) or not is_true_sum(perf.bytes) then
    return nil, "the arguments do not fit"
  end
  return perf
end

-- The key of the calls that a sheet has in one row: those of an op with these parameters and this spec.
function perf_model.key(sheet, name, perf)
  local parts = { sheet, name, perf.spec or "" }
  for _, param in ipairs(perf.params) do
    parts[#parts + 1] = param[1] .. "=" .. python_literals.write(param[2])
  end
  return table.concat(parts, "\0")
end

-- Parameters as cells, { name, value }: texts and numbers; None is nil.
function perf_model.cells(params)
  local out = {}
  for i, param in ipairs(params) do
    local name, value = param[1], param[2]
    if value == none then
      value = nil
    elseif type(value) ~= "number" and type(value) ~= "string" then
      value = python_literals.write(value)
    end
    out[i] = { name = name, value = value }
  end
  return out
end

-- The value of the cell with this name: nil if it is None, "nan" if only other ops have such a parameter.
function perf_model.cell(cells, name)
  for _, cell in ipairs(cells) do
    if cell.name == name then return cell.value end
  end
  return "nan"
end

-- Texts in the names of kernels that compute products of fp32 in TF32: cuBLAS, CUTLASS, hipBLASLt.
local TF32 = { "tf32", "xf32", "tensorop_s1688gemm" }

-- The result of a model; its spec is that of TF32 if a kernel computes in it.
local function with_tf32(perf, call)
  if not perf or perf.spec ~= "matrix_fp32" then return perf end
  local is_tf32 = sequences.any(call.kernels(), function(kernel)
    return sequences.any(TF32, function(text) return kernel:find(text, 1, true) end)
  end)
  if is_tf32 then perf.spec = "matrix_tf32" end
  return perf
end

-- `op` is the row for this call (families.op_of_call).
function perf_model.of(op, call)
  if not call.dims then return nil, perf_model.NO_SHAPES end
  local perf, why = checked(sums[op.family], op, call)
  return with_tf32(perf, call), why
end

function perf_model.backward_of(op, call)
  local backward = backward_sums[op.family]
  if not backward or not call.dims then return nil, perf_model.NO_SHAPES end
  local perf, why = checked(backward, op, call)
  return with_tf32(perf, call), why
end

return perf_model
