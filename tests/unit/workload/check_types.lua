-- Whether all of a step has the type that mixed_workloads (lib.sh) gives it: gentables lua check_types.lua N
-- K TRACE... prints each violation, and ends with 1. Each trace is of one step.
local file = require "core.file"
local json = require "codec.json"

local n, k = tonumber(arg[1]), tonumber(arg[2])

-- The types of GEMMs by their name; the elements in the buckets of each type.
local GEMMS = { g = "c10::BFloat16", router = "float", half = "c10::Half", up = "c10::Half",
  down = "c10::BFloat16" }
local GRADIENTS = { BFloat16 = 2 * n * k, Float = 2 * 3 * n, Half = 2 * 5 * 7 }
-- The types of collectives by a pattern for their name; false: of any type.
local COLLECTIVES = { { "^e%.dispatch", "Half" }, { "^e%.gradient_combine", "Half" },
  { "^e%.combine", "BFloat16" }, { "^e%.gradient_dispatch", "BFloat16" }, { "%.bf16$", "BFloat16" },
  { "%.fp32$", "Float" }, { "%.fp16$", "Half" }, { "^bucket", false } }
-- The ends of kernels' names, before the part for transposition.
local SHORT = { ["c10::BFloat16"] = "_bf16", ["c10::Half"] = "_f16", float = "" }

local failed = false
local function wrong(path, what)
  print(path .. ": " .. what)
  failed = true
end

local function check_gemm(path, op, kernel)
  local expected = GEMMS[op.args.layer:match("[^.]*$")]
  for _, type in ipairs(op.args["Input type"]) do
    if type ~= expected and type ~= "Scalar" then wrong(path, op.args.layer .. " is of " .. type) end
  end
  local suffix = SHORT[expected]
  if suffix == "" and kernel.name:find("cublasLt", 1, true) then suffix = "_f32" end
  if kernel.name:gsub("_[NT][NT]$", ""):match("gemm.*"):gsub("gemm_of", "gemm") ~= "gemm" .. suffix then
    wrong(path, op.args.layer .. " is done by " .. kernel.name)
  end
end

-- Adds the elements of buckets to `sums`, by their type. Returns whether these are gradients.
local function check_collective(path, op, sums)
  local name, found = op.args.bucket, false
  for _, one in ipairs(COLLECTIVES) do
    if not found and name:find(one[1]) then
      found = true
      if one[2] and op.args.dtype ~= one[2] then wrong(path, name .. " is of " .. op.args.dtype) end
    end
  end
  if not found then wrong(path, "a collective called " .. name) end
  if name:find("^bucket") then
    sums[op.args.dtype] = (sums[op.args.dtype] or 0) + op.args["In msg nelems"]
  end
  return name:find("^bucket") ~= nil or name:find("%.b?f%d+$") ~= nil
end

local function check(path)
  local ops, kernels, sums, seen, has_gradients = {}, {}, {}, {}, false
  for _, event in ipairs(assert(json.decode(assert(file.read(path)))).traceEvents) do
    if event.cat == "cpu_op" then ops[#ops + 1] = event end
    if event.cat == "kernel" then kernels[event.args["External id"]] = event end
  end
  for _, op in ipairs(ops) do
    if op.args.layer then
      seen[op.args.layer:match("[^.]*$")] = true
      check_gemm(path, op, kernels[op.args["External id"]])
    else
      has_gradients = check_collective(path, op, sums) or has_gradients
    end
  end
  for name in pairs(GEMMS) do
    if not seen[name] then wrong(path, "no GEMM called " .. name) end
  end
  if not has_gradients then wrong(path, "no gradients") end
  for dtype, elements in pairs(next(sums) and GRADIENTS or {}) do
    if sums[dtype] ~= elements then
      wrong(path, ("%s elements of %s in buckets, not %d"):format(sums[dtype], dtype, elements))
    end
  end
end

for i = 3, #arg do check(arg[i]) end
os.exit(failed and 1 or 0)
