-- The fields of a measured configuration's result, as gentables-workload sends them and result.json keeps
-- them.
--
--   result_fields.lacking(result, ranks, backend) -> the names of fields that are missing or of a wrong type
local result_fields = {}

-- Checks of a value, for lists of { "a.b.c", check }.
local is = {}
result_fields.is = is

function is.text(value) return type(value) == "string" end
function is.number(value) return type(value) == "number" and value - value == 0 end
function is.count(value) return math.type(value) == "integer" and value >= 0 end
function is.positive(value) return is.count(value) and value > 0 end
function is.table(value) return type(value) == "table" end

function is.one_of(...)
  local known = {}
  for _, name in ipairs { ... } do known[name] = true end
  return function(value) return known[value] ~= nil end
end

function is.optional(check) return function(value) return value == nil or check(value) end end

-- The fields of a measured result, and of each of its ranks.
local measured_fields = { { "backend", is.one_of("host", "cuda") }, { "machine", is.table },
  { "note", is.optional(is.text) }, { "seconds", is.number }, { "used.channels", is.count },
  { "used.threads", is.count }, { "trace_bytes", is.optional(is.table) } }
local rank_fields = {
  host = { { "await_us", is.number }, { "communication_cpu_us", is.number },
    { "communication_us", is.number }, { "gemm_alone_us", is.number }, { "gemm_cpu_us", is.number },
    { "gemm_us", is.number } },
  cuda = { { "communication_us", is.number }, { "gemm_alone_us", is.number }, { "gemm_us", is.number } },
}
for _, group in ipairs { { "times", "exposed", "gemms", "gemms_alone", "gemms_beside", "left", "overlapped",
  "serial", "traced" }, { "ratios", "cost", "hidden", "overlapped_to_serial", "tracing" } } do
  for i = 2, #group do
    local name = group[1] .. "." .. group[i]
    for _, key in ipairs { "high", "low", "median" } do
      measured_fields[#measured_fields + 1] = { ("%s.%s"):format(name, key), is.number }
    end
    measured_fields[#measured_fields + 1] = { name .. ".samples", is.positive }
  end
end

-- The value at "a.b.c"; nil: there is none.
local function value_at(from, path)
  for key in path:gmatch("[^.]+") do
    if type(from) ~= "table" then return nil end
    from = from[key]
  end
  return from
end

-- Adds the names of fields that are missing or have a wrong type; of a list, `at` is its index.
function result_fields.add_lacking(out, value, fields, at)
  for _, field in ipairs(fields) do
    if not field[2](value_at(value, field[1])) then out[#out + 1] = (at or "") .. field[1] end
  end
  return out
end

-- The names of the fields that a measured result of so many ranks lacks.
function result_fields.lacking(result, count, backend)
  local out, ranks = result_fields.add_lacking({}, result, measured_fields), result.ranks
  if not is.table(ranks) or #ranks ~= count then
    out[#out + 1] = "ranks"
    return out
  end
  for i, rank in ipairs(ranks) do
    result_fields.add_lacking(out, rank, rank_fields[backend], ("ranks[%d]."):format(i - 1))
  end
  if backend == "host" then result_fields.add_lacking(out, result, { { "machine.cores", is.positive } }) end
  for _, bytes in ipairs(is.table(result.trace_bytes) and result.trace_bytes or {}) do
    if not is.count(bytes) then out[#out + 1] = "trace_bytes" end
  end
  return out
end

return result_fields
