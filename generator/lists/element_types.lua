-- Types of elements in traces of PyTorch. Those of the bench's collectives are rows of lists.dtypes, too, and
-- have their bytes and precision from there.
--
--   name      in requests to gentables-replay, and in lists.dtypes; absent: replay does not compute it
--   pytorch   of torch.ScalarType, as metadata of collectives have it
--   number    PyTorch's number of it, as Concrete Inputs have it; absent: not needed
--   written   as Input types of a CPU op have it; also in other case, and without c10::; absent: performance
--             models have no size for it
--   bytes     of an element, as traces count them
--   packed    numbers in such an element (default 1)
--   precision of the units that compute it, in performance models; absent: unknown
local lists = require "lists.lists"

local element_types = {
  { name = "float64", pytorch = "Double", number = 7, written = { "double" }, bytes = 8, precision = "fp64" },
  { name = "float32", pytorch = "Float", number = 6, written = { "float" } },
  { name = "float16", pytorch = "Half", number = 5, written = { "c10::Half" } },
  { name = "bfloat16", pytorch = "BFloat16", number = 15, written = { "c10::BFloat16" } },
  { name = "float8_e4m3fn", pytorch = "Float8_e4m3fn", number = 24, written = { "c10::Float8_e4m3fn" },
    bytes = 1, precision = "fp8" },
  { name = "float8_e5m2", pytorch = "Float8_e5m2", number = 23, written = { "c10::Float8_e5m2" }, bytes = 1,
    precision = "fp8" },
  { name = "float8_e4m3fnuz", pytorch = "Float8_e4m3fnuz", number = 26, written = { "c10::Float8_e4m3fnuz" },
    bytes = 1, precision = "fp8" },
  { name = "float8_e5m2fnuz", pytorch = "Float8_e5m2fnuz", number = 25, written = { "c10::Float8_e5m2fnuz" },
    bytes = 1, precision = "fp8" },
  { pytorch = "Float8_e8m0fnu", written = { "c10::Float8_e8m0fnu" }, bytes = 1, precision = "fp8" },
  { name = "float4_e2m1fn_x2", pytorch = "Float4_e2m1fn_x2", written = { "c10::Float4_e2m1fn_x2" },
    bytes = 1, packed = 2, precision = "fp4" },
  { pytorch = "Byte", number = 0, written = { "unsigned char" }, bytes = 1,
    precision = "fp8" }, -- holds such codes
  { pytorch = "Char", number = 1, written = { "signed char" }, bytes = 1, precision = "int8" },
  { pytorch = "Bool", number = 11, written = { "bool" }, bytes = 1 },
  { pytorch = "Short", number = 2, bytes = 2 },
  { pytorch = "Int", number = 3, written = { "int", "scalar" }, bytes = 4 },
  { pytorch = "Long", number = 4, written = { "long", "long int" }, bytes = 8 },
  { pytorch = "UInt16", bytes = 2 },
  { pytorch = "UInt32", bytes = 4 },
  { pytorch = "UInt64", bytes = 8 },
  { pytorch = "ComplexHalf", bytes = 4 },
  { pytorch = "ComplexFloat", bytes = 8 },
  { pytorch = "ComplexDouble", bytes = 16 },
}

-- The name of a type without its namespace.
function element_types.plain(name) return (name:gsub("^c10::", "")) end

local function key_of_input(name) return element_types.plain(name):lower() end

local by_pytorch, by_number, by_written = {}, {}, {}
for _, row in ipairs(element_types) do
  if not row.bytes then
    local dtype = lists.find("dtypes", row.name)
    row.bytes, row.precision = dtype.bytes, dtype.short
  end
  by_pytorch[row.pytorch] = row
  if row.number then by_number[row.number] = row end
  for _, text in ipairs(row.written or {}) do by_written[key_of_input(text)] = row end
end

-- The rows of names and numbers; nil: unknown.
function element_types.of_metadata(name) return by_pytorch[element_types.plain(name)] end
function element_types.of_number(number) return by_number[number] end
function element_types.of_input(name) return by_written[key_of_input(name)] end

return element_types
