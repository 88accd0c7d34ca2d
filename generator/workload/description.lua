-- A workload as its file has it: read, checked, and filled in. workloads/small.lua explains every key.
--
--   description.load(text) -> workload: text is a path, or the name of a shipped workload. Wrong input raises
--     an error with the file, the key and the valid values. A path that ends with .yaml or .yml is that of a
--     training script (training_yaml.lua); notes on stderr list its keys without effect.
local fail = require "base.fail"
local file = require "core.file"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local limits = require "workload.limits"
local lists = require "lists.lists"
local lua_data = require "codec.lua_data"
local training_yaml = require "workload.training_yaml"

local description = {}

local MOST_SHOWN = 60 -- bytes of a wrong value
local MOST = 100000 -- of a count
local BUCKET_BYTES = 4 << 20

local COLLECTIVES = { allreduce = true, reduce_scatter = true, none = true }

-- The shipped workloads.
description.shipped = { "small", "dense", "moe" }

-- ---- checks ------------------------------------------------------------------------------------

local function reject(at, message, ...)
  fail.input("%s: %s: %s", at.path, at.key, message:format(...))
end

-- A wrong value as messages show it.
local function shown(value)
  local text = tostring(value):gsub("%c", " ")
  return fail.cut(text, MOST_SHOWN)
end

local function below(at, key)
  key = math.type(key) and ("[%d]"):format(key) or (at.key == "workload" and key or "." .. key)
  return { path = at.path, key = (at.key == "workload" and "" or at.key) .. key }
end

local function names_of(known)
  return table.concat(sorted_keys(known), ", ")
end

local function check_keys(at, value, known)
  if type(value) ~= "table" then reject(at, "a table { ... } is required") end
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  for _, key in ipairs(keys) do
    if not known[key] then reject(at, "unknown key %s; valid: %s", shown(key), names_of(known)) end
  end
end

local function whole(at, value, default, most, least)
  if value == nil then value = default end
  if value == nil then reject(at, "is missing; a whole number is required") end
  if math.type(value) ~= "integer" or value < (least or 1) or value > most then
    reject(at, "%s is impossible; a whole number from %d to %d is required", shown(value), least or 1,
      most)
  end
  return value
end

local function name_of(at, value)
  if value == nil then reject(at, "is missing; a name is required") end
  if type(value) ~= "string" or not value:find("^[%w._-]+$") or #value > 40 then
    reject(at, "%s is not a name; at most 40 letters, digits, '.', '_' and '-' are required",
      shown(value))
  end
  return value
end

local function list(at, value)
  if type(value) ~= "table" or #value == 0 then reject(at, "a list with at least one entry is required") end
  for index in pairs(value) do
    if math.type(index) ~= "integer" or index < 1 or index > #value then
      reject(at, "is a list and has no key %s", shown(index))
    end
  end
  return value
end

-- ---- parts -------------------------------------------------------------------------------------

local BACKENDS = { host = true, cuda = true }
local DTYPES = sequences.set(lists.names("dtypes"))

-- The dtype of each backend; a missing one is an error when it is needed.
local function dtype(at, value)
  local function known(where, name)
    local row = type(name) == "string" and lists.find("dtypes", name)
    if not row then reject(where, "unknown type %s; valid: %s", shown(name), names_of(DTYPES)) end
    return row.name
  end
  if type(value) == "string" then return { host = known(at, value), cuda = known(at, value) } end
  check_keys(at, value, BACKENDS)
  local out = {}
  for backend, name in pairs(value) do out[backend] = known(below(at, backend), name) end
  return out
end

local gemm_keys = { name = true, m = true, n = true, k = true, dtype = true, backward = true }

local function gemm(at, value, rows)
  check_keys(at, value, gemm_keys)
  if value.backward ~= nil and type(value.backward) ~= "boolean" then
    reject(below(at, "backward"), "true or false is required")
  end
  return { name = name_of(below(at, "name"), value.name), backward = value.backward ~= false,
    dtype = dtype(below(at, "dtype"), value.dtype or {}),
    m = rows and whole(below(at, "m"), value.m, rows, limits.longest) or nil,
    rows_come_by = not rows and "tokens, top_k or load" or value.m and "m" or "tokens",
    n = whole(below(at, "n"), value.n, nil, limits.longest),
    k = whole(below(at, "k"), value.k, nil, limits.longest) }
end

local expert_keys = { load = true, top_k = true }

local function experts(at, value)
  if value == nil then return nil end
  check_keys(at, value, expert_keys)
  local out = { load = {}, top_k = whole(below(at, "top_k"), value.top_k, 1, 64) }
  for i, weight in ipairs(list(below(at, "load"), value.load)) do
    out.load[i] = whole(below(below(at, "load"), i), weight, nil, 1000)
  end
  return out
end

local layer_keys = { name = true, copies = true, gemms = true, experts = true }

-- The number of GEMMs of a step with these: each GEMM of the forward pass may have two in the backward pass.
local function count_gemms(before, at, gemms, copies, micro_batches)
  local each = 0
  for _, one in ipairs(gemms) do each = each + (one.backward and 3 or 1) end
  local count = before + each * copies * micro_batches
  if count <= limits.items then return count end
  reject(at, "gives a step %d GEMMs, including copies, micro-batches and the backward pass;"
    .. " maximum %d", count, limits.items)
end

-- The layer as often as it has copies, appended to `out.layers`; `rows`: of each micro-batch.
local function add_layer(out, at, value, rows)
  check_keys(at, value, layer_keys)
  local name = name_of(below(at, "name"), value.name)
  local copies = whole(below(at, "copies"), value.copies, 1, 1000)
  local with = experts(below(at, "experts"), value.experts)
  local gemms = {}
  for i, one in ipairs(list(below(at, "gemms"), value.gemms)) do
    local where = below(below(at, "gemms"), i)
    if with and type(one) == "table" and one.m ~= nil then
      reject(below(where, "m"), "the router sends experts their rows; give load and tokens instead")
    end
    gemms[i] = gemm(where, one, not with and rows)
  end
  out.gemm_count = count_gemms(out.gemm_count, at, gemms, copies, out.micro_batches)
  for copy = 1, copies do
    table.insert(out.layers, { name = copies > 1 and name .. copy or name, gemms = gemms, experts = with })
  end
end

local gradient_keys = { collective = true, bucket_bytes = true }

local function gradients(at, value)
  value = value or {}
  check_keys(at, value, gradient_keys)
  local collective = value.collective or "allreduce"
  if not COLLECTIVES[collective] then
    reject(below(at, "collective"), "unknown collective %s; valid: %s", shown(collective),
      names_of(COLLECTIVES))
  end
  return { collective = collective,
    bucket_bytes = whole(below(at, "bucket_bytes"), value.bucket_bytes, BUCKET_BYTES, 1 << 30) }
end

local workload_keys = { name = true, dtype = true, tokens = true, micro_batches = true, layers = true,
  gradients = true, steps = true, warm_up = true }

local function check(path, value)
  local at = { path = path, key = "workload" }
  check_keys(at, value, workload_keys)
  local out = { path = path, name = name_of(below(at, "name"), value.name),
    dtype = dtype(below(at, "dtype"), value.dtype or "float32"),
    tokens = whole(below(at, "tokens"), value.tokens, nil, limits.longest),
    micro_batches = whole(below(at, "micro_batches"), value.micro_batches, 1, 64),
    gradients = gradients(below(at, "gradients"), value.gradients),
    steps = whole(below(at, "steps"), value.steps, 20, MOST),
    warm_up = whole(below(at, "warm_up"), value.warm_up, 3, MOST, 0), layers = {}, gemm_count = 0 }
  if out.tokens % out.micro_batches ~= 0 then
    reject(below(at, "tokens"), "%d is not a multiple of %d micro-batches", out.tokens, out.micro_batches)
  end
  for i, layer in ipairs(list(below(at, "layers"), value.layers)) do
    add_layer(out, below(below(at, "layers"), i), layer, out.tokens // out.micro_batches)
  end
  return out
end

-- ---- files -------------------------------------------------------------------------------------

local function path_of(text)
  return lists.contains(description.shipped, text) and ("%s/workloads/%s.lua"):format(gentables.home, text)
    or text
end

-- Checks the text of a file; `path` is for messages.
function description.parse(text, path)
  local format = path:match("%.ya?ml$") and "yaml" or "lua"
  local value, notes
  if format == "yaml" then
    value, notes = training_yaml.read(text, path)
  else
    value = lua_data.run(path, text)
  end
  local out = check(path, value)
  for _, note in ipairs(notes or {}) do fail.note("%s: %s", path, note) end
  out.text, out.format = text, format
  return out
end

function description.load(text)
  local path = path_of(text)
  if not file.exists(path) then
    fail.input("%s: no such file or shipped workload; shipped: %s", text,
      table.concat(description.shipped, ", "))
  end
  return description.parse(fail.unless(file.read(path)), path)
end

-- The help of the option with a workload.
description.HELP = "the workload: a Lua file, a training script's YAML, or "
  .. table.concat(description.shipped, ", ")

-- The dtype of elements on this backend if a GEMM has no dtype of its own; raises if there is none.
function description.dtype_on(workload, backend)
  return workload.dtype[backend] or fail.input("%s: dtype: %s has none; valid: %s",
    workload.path, backend, names_of(DTYPES))
end

return description
