-- Requests to gentables-replay: an op of a trace, from its arguments, as a line (bench/replay/op.h).
--
--   request.of(op, call, perf) -> { kind, fields = { { name, value }... }, notes = { text... }, flops (nil:
--     those of `perf`) } | nil, reason
--   request.line(one, id[, limits]) -> the line, without its newline
--   request.saved(one, id[, threads]) -> the line with its notes, for a replay of this op alone;
--     threads: of a call
--   request.value(one, name) -> the value of a field
--   request.type_named(name) -> the name in lines of a trace's type (c10::BFloat16); nil: unknown
--   request.read(line) -> the request of such a line, its id | nil, reason
--
-- `op` is a row of families.lua, `call` its arguments, `perf` the result of perf_model.lua for them.
local arguments = require "trace.ops.arguments"
local element_types = require "lists.element_types"
local python_literals = require "codec.python_literals"
local sequences = require "base.sequences"

local request = {}

function request.type_named(name)
  local row = element_types.of_input(name)
  return row and row.name
end

local PAIRS = "float4_e2m1fn_x2" -- two elements in a byte

local function type_of(call, index)
  local name = call.types and call.types[index + 1]
  if type(name) ~= "string" or name == "" then return nil, "its type is not in the trace" end
  local known = request.type_named(name)
  if not known then return nil, "replay does not support " .. element_types.plain(name) end
  return known
end

local function shape_of(call, index)
  local shape = call.dims and call.dims[index + 1]
  return type(shape) == "table" and shape or {}
end

local function strides_of(call, index)
  local strides = call.strides and call.strides[index + 1]
  return type(strides) == "table" and #strides > 0 and strides or nil
end

-- The given number of an argument; nil: unknown.
local function number_at(call, index)
  local text = call.concrete and call.concrete[index + 1]
  return type(text) == "string" and tonumber(text) or nil
end

-- ---- matrices ------------------------------------------------------------------------------------------

-- The layout of a matrix of `rows` × `columns` with these last two strides: whether it is transposed, and
-- its leading dimension; nil: neither layout. Along a dimension of 1 any stride fits.
local function matrix_layout(rows, columns, row_stride, column_stride)
  if column_stride == 1 or columns == 1 then
    local leading = rows == 1 and math.max(row_stride, columns) or row_stride
    if leading >= columns then return false, leading end
  end
  if row_stride == 1 or rows == 1 then
    local leading = columns == 1 and math.max(column_stride, rows) or column_stride
    if leading >= rows then return true, leading end
  end
end

-- { transposed, leading, batch } of an argument [B,]rows,columns; adds differences from the trace to `notes`.
local function matrix(call, index, name, notes)
  local shape, strides = shape_of(call, index), strides_of(call, index)
  local rows, columns, batch = shape[#shape - 1], shape[#shape], #shape == 3 and shape[1] or 1
  local packed = { transposed = false, leading = columns, batch = batch > 1 and rows * columns or 0 }
  if not strides then
    notes.strides = "strides are not in the trace: taken as contiguous"
    return packed
  end
  local transposed, leading = matrix_layout(rows, columns, strides[#strides - 1], strides[#strides])
  if transposed == nil then
    notes[#notes + 1] = ("%s has strides %s: copied first; the copy is not timed"):format(name,
      python_literals.write(strides))
    return packed
  end
  return { transposed = transposed, leading = leading, batch = batch > 1 and strides[1] or 0 }
end

local function elements_of(call, index)
  local count = 1
  for _, extent in ipairs(shape_of(call, index)) do count = count * extent end
  return count
end

-- The addend: none, row or matrix.
local function addend_of(op, call, size, notes)
  if not op.has_bias then return "none" end
  local shape, elements = shape_of(call, 0), elements_of(call, 0)
  if elements == size.n and (#shape == 1 or shape[#shape] == size.n) and (size.m > 1 or #shape == 1) then
    return "row"
  end
  if elements ~= size.batch * size.m * size.n then
    notes[#notes + 1] = "the addend is expanded first; that is not timed"
  end
  return "matrix"
end

-- ---- scaled products -----------------------------------------------------------------------------------

-- Whether an optional argument was given: it has a type, or else dimensions.
local function is_given(call, index)
  if not index then return false end
  local type = call.types and call.types[index + 1]
  return type ~= nil and type ~= "" or #shape_of(call, index) > 0
end

-- Whether a factor has one number, one for each of `extent`, or neither. An extent of 1 fits the first two.
local function scale_of(call, index, extent)
  local elements = elements_of(call, index)
  return { is_one = elements <= 1, is_each = elements == extent or elements <= 1 and extent == 1 }
end

local function up(a, b) return (a + b - 1) // b end

-- Whether a matrix has these extents, in either order.
local function is_of(shape, x, y)
  return #shape == 2 and (shape[1] == x and shape[2] == y or shape[1] == y and shape[2] == x)
end

-- The elements of k that share a factor of one of these types.
local small_blocks = { ["c10::Float8_e8m0fnu"] = 32, ["c10::Float8_e4m3fn"] = 16 }

-- The elements of an operand that share a factor, for so many rows (A) or columns (B), k long, by the shape
-- of its factors as PyTorch records it: "1x128", "128x128" (blocks of k may be padded to four) or, if factors
-- are of E8M0 or E4M3, "1x32" or "1x16", in whole tiles of 128 by 4; nil: none of these.
local function block_of(call, index, extent, k)
  local shape, blocks, type = shape_of(call, index), up(k, 128), call.types and call.types[index + 1]
  local small = small_blocks[type]
  if small then
    local tiled = up(extent, 128) * 128 * up(up(k, small), 4) * 4
    local fits = elements_of(call, index) == tiled or is_of(shape, extent, up(k, small))
    return fits and "1x" .. small or nil
  end
  if type and type ~= "float" then return nil end
  if is_of(shape, extent, blocks) then return "1x128" end
  local rows = up(extent, 128)
  return (is_of(shape, rows, blocks) or is_of(shape, rows, up(blocks, 4) * 4)) and "128x128" or nil
end

-- The fields of blocks that share a scale; none if one operand's are unknown.
local function block_fields(op, call, size)
  local a, b = block_of(call, op.scale_a, size.m, size.k), block_of(call, op.scale_b, size.n, size.k)
  return a and b and { { "block_a", a }, { "block_b", b } } or {}
end

-- The kinds of A's and B's scales together. cuBLASLt does not mix some kinds: these are made equal, with a
-- note.
local function scaling_of(op, call, size, notes)
  local a, b = scale_of(call, op.scale_a, size.m), scale_of(call, op.scale_b, size.n)
  if a.is_one and b.is_one then return "tensor" end
  if a.is_each and b.is_each then return "row" end
  if not (a.is_one or a.is_each) or not (b.is_one or b.is_each) then return "block" end
  notes[#notes + 1] = a.is_one and "A has one scale, and B one for each column: A's is repeated for each row"
    or "B has one scale, and A one for each row: B's is repeated for each column"
  return "row"
end

-- The type of the result; nil, reason if it is unknown.
local function out_type_of(op, call, dtype, notes)
  if op.out then return type_of(call, op.out) end
  local text = op.out_type and call.concrete and call.concrete[op.out_type + 1]
  if text == "" then return dtype end -- not given: that of A
  local number = tonumber(text)
  if number then
    local known = element_types.of_number(number)
    if known and known.name then return known.name end
    return nil, ("replay does not support PyTorch's type %d"):format(number)
  end
  notes[#notes + 1] = "the result's type is not in the trace: taken as bfloat16"
  return "bfloat16"
end

-- Whether the result has a scale, which only results of 8 bits have.
local function scales_out(op, call, out_type, notes)
  if not is_given(call, op.scale_out) then return false end
  if out_type:find("float8", 1, true) then return true end
  notes[#notes + 1] = "the result's scale is left out"
  return false
end

-- The fields of scaled products: the scales' kind, the types of the result and of a bias; nil, reason if
-- there are none.
local function scaled_fields(op, call, size, dtype, notes)
  if not op.scale_a then return nil, "its scales are not among its arguments" end
  local out_type, why = out_type_of(op, call, dtype, notes)
  if not out_type then return nil, why end
  local fast = op.fast and call.concrete and call.concrete[op.fast + 1] == "True"
  local out = { { "scaling", scaling_of(op, call, size, notes) }, { "out_dtype", out_type },
    { "fast_accumulation", fast and 1 or 0 } }
  if scales_out(op, call, out_type, notes) then out[#out + 1] = { "scale_out", 1 } end
  local bias = is_given(call, op.row) and call.types and request.type_named(call.types[op.row + 1] or "")
  if bias then out[#out + 1] = { "addend_dtype", bias } end
  local blocks = out[1][2] == "block" and block_fields(op, call, size) or {}
  return table.move(blocks, 1, #blocks, #out + 1, out)
end

local function parameters(perf)
  local out = {}
  for _, param in ipairs(perf.params) do out[param[1]] = param[2] end
  return out
end

-- alpha and beta, of ops that add; Concrete Inputs have beta first.
local function factors(op, call, notes)
  if not op.has_bias then return 1, 1 end
  local beta, alpha = number_at(call, 3), number_at(call, 4)
  if not beta or not alpha then notes.factors = "alpha and beta are not in the trace: taken as 1" end
  return alpha or 1, beta or 1
end

local function flag(value) return value and 1 or 0 end

local function list_of(notes)
  local out = table.move(notes, 1, #notes, 1, {})
  out[#out + 1] = notes.strides
  out[#out + 1] = notes.factors
  return out
end

-- The type of both operands; nil, reason if there is none.
local function type_of_both(op, call)
  local dtype, why = type_of(call, op.a)
  if not dtype then return nil, why end
  local other
  other, why = type_of(call, op.b)
  if not other then return nil, why end
  if other == dtype then return dtype end
  return nil, ("A and B are of different types (%s and %s)"):format(dtype, other)
end

local function is_empty(sizes) return sequences.any(sizes, function(extent) return extent == 0 end) end

-- Traces count pairs of 4 bits as one element: makes the extents in memory those of numbers, as K is already.
-- false: the pairs are not along K.
local function spread_pairs(a, b)
  if a.transposed or not b.transposed then return false end
  for _, one in ipairs { a, b } do one.leading, one.batch = 2 * one.leading, 2 * one.batch end
  return true
end

local function gemm(op, call, perf)
  if op.transposed_a then return nil, "the layouts of Transformer Engine's products are not replayed" end
  local dtype, why = type_of_both(op, call)
  if not dtype then return nil, why end
  local at, notes = parameters(perf), {}
  local size = { batch = at.B or 1, m = at.M, n = at.N, k = at.K }
  if is_empty { size.batch, size.m, size.n, size.k } then
    return nil, "an empty product cannot be timed"
  end
  local a, b = matrix(call, op.a, "A", notes), matrix(call, op.b, "B", notes)
  if dtype == PAIRS and not spread_pairs(a, b) then return nil, "pairs of 4 bits are not along K" end
  if op.has_activation then notes[#notes + 1] = "the activation is left out" end
  local alpha, beta = factors(op, call, notes)
  local addend = is_given(call, op.row) and "row" or addend_of(op, call, size, notes)
  local fields = { { "dtype", dtype }, { "batch", size.batch }, { "m", size.m }, { "n", size.n },
    { "k", size.k }, { "trans_a", flag(a.transposed) }, { "lda", a.leading }, { "stride_a", a.batch },
    { "trans_b", flag(b.transposed) }, { "ldb", b.leading }, { "stride_b", b.batch },
    { "addend", addend }, { "alpha", alpha }, { "beta", beta } }
  if op.is_scaled then
    local scaled, reason = scaled_fields(op, call, size, dtype, notes)
    if not scaled then return nil, reason end
    table.move(scaled, 1, #scaled, #fields + 1, fields)
  end
  return { kind = "gemm", fields = fields, notes = list_of(notes) }
end

-- ---- convolutions --------------------------------------------------------------------------------------

-- Whether strides are those of a tensor with its dimensions in this order, the innermost last. Strides of
-- dimensions of 1 do not count.
local function lies_in_order(shape, strides, order)
  local step = 1
  for i = #order, 1, -1 do
    local index = order[i]
    if shape[index] > 1 and strides[index] ~= step then return false end
    step = step * shape[index]
  end
  return true
end

-- Whether a tensor is laid out in the same way with its channels first and last.
local function fits_both(shape)
  local elements = 1
  for i = 3, #shape do elements = elements * shape[i] end
  return shape[2] == 1 or elements == 1
end

-- Whether the channels of a tensor are its innermost dimension.
local function channels_last(shape, strides, name, notes)
  if type(strides) ~= "table" or #strides ~= #shape then
    notes.strides = "strides are not in the trace: taken as contiguous"
    return false
  end
  local plain, last = {}, { 1 }
  for i = 1, #shape do plain[i] = i end
  for i = 3, #shape do last[#last + 1] = i end
  last[#last + 1] = 2
  if lies_in_order(shape, strides, plain) then return false end
  if lies_in_order(shape, strides, last) then return true end
  notes[#notes + 1] = ("%s has strides %s: copied first; the copy is not timed"):format(name,
    python_literals.write(strides))
  return false
end

local function joined(list, from) return table.concat(list, ",", from or 1) end

local function as_integers(list) return sequences.map(list, math.tointeger) end

-- The fields that both directions have, without the layout of the input; nil, reason if there are none.
local function sizes_of_convolution(op, call, at)
  local dtype, why = type_of(call, op.input)
  if not dtype then return nil, why end
  if type_of(call, op.input + 1) ~= dtype then return nil, "input and filter are of different types" end
  local input, filter, transposed = at.input_shape, at.filter_shape, at.transposed_conv
  if is_empty(input) or is_empty(filter) then return nil, "an empty convolution cannot be timed" end
  local groups = math.tointeger(at.groups)
  local fields = { { "dtype", dtype }, { "spatial", #input - 2 }, { "batch", input[1] },
    { "in_channels", input[2] }, { "out_channels", transposed and filter[2] * groups or filter[1] },
    { "groups", groups }, { "input", joined(input, 3) }, { "filter", joined(filter, 3) } }
  for _, name in ipairs { "stride", "padding", "dilation", "output_padding" } do
    fields[#fields + 1] = { name, joined(as_integers(at[name])) }
  end
  fields[#fields + 1] = { "transposed", flag(transposed) }
  return fields
end

local function add_layouts(fields, at, notes)
  local last = channels_last(at.input_shape, at.input_stride, "the input", notes)
  fields[#fields + 1] = { "input_channels_last", flag(last) }
  fields[#fields + 1] = { "filter_channels_last",
    flag(channels_last(at.filter_shape, at.weight_stride, "the filter", notes)) }
  return last
end

local function convolution(op, call, perf)
  local at, notes = parameters(perf), {}
  local fields, why = sizes_of_convolution(op, call, at)
  if not fields then return nil, why end
  fields[#fields + 1] = { "bias", flag(at.bias) }
  add_layouts(fields, at, notes)
  return { kind = "convolution", fields = fields, notes = list_of(notes) }
end

-- ---- backward convolutions -----------------------------------------------------------------------------

local GRADIENTS = { "input", "filter", "bias" } -- in the order of output_mask

-- The names of the gradients that the call computes; nil, reason if that is unknown or none is computed.
local function gradients_of(op, call)
  local mask = arguments.given(call, op.input + 9)
  if type(mask) ~= "table" or #mask ~= #GRADIENTS then
    return nil, "the trace does not show which gradients were computed (output_mask)"
  end
  local names = {}
  for i, name in ipairs(GRADIENTS) do
    if mask[i] == true then names[#names + 1] = name end
  end
  if #names == 0 then return nil, "no gradient was computed" end
  return names
end

-- Adds a note if the gradient of the result, argument 0, is not laid out as the input.
local function note_layout(call, shape, is_last, notes)
  local strides, own = strides_of(call, 0), {}
  local other = channels_last(shape, strides, "the gradient of the result", own)
  if #own == 0 and strides and other ~= is_last and not fits_both(shape) then
    own[1] = "the gradient of the result is laid out unlike the input: copied first; the copy is not timed"
  end
  notes[#notes + 1], notes.strides = own[1], notes.strides or own.strides
end

-- FLOPs of the gradients of input and filter each, and of the bias.
local function flops_of_gradients(names, at, result)
  local reads = arguments.product(at.transposed_conv and at.input_shape or result)
  local total = 0
  for _, name in ipairs(names) do
    total = total + (name == "bias" and arguments.product(result)
      or 2 * reads * arguments.product(at.filter_shape, 2))
  end
  return total
end

local function convolution_backward(op, call, perf)
  local at, notes = parameters(perf), {}
  local fields, why = sizes_of_convolution(op, call, at)
  if not fields then return nil, why end
  local gradients
  gradients, why = gradients_of(op, call)
  if not gradients then return nil, why end
  local result = shape_of(call, 0)
  if #result ~= #at.input_shape then return nil, "the gradient of the result has no shape" end
  if type_of(call, 0) ~= fields[1][2] then return nil, "input and gradient are of different types" end
  fields[#fields + 1] = { "gradients", table.concat(gradients, ",") }
  note_layout(call, result, add_layouts(fields, at, notes), notes)
  return { kind = "convolution_backward", fields = fields, notes = list_of(notes),
    flops = flops_of_gradients(gradients, at, result) }
end

-- ---- lines ---------------------------------------------------------------------------------------------

local makers = { gemm = gemm, convolution = convolution, convolution_backward = convolution_backward }

function request.of(op, call, perf) return makers[op.family](op, call, perf) end

local function text_of(value)
  return math.type(value) == "float" and ("%.17g"):format(value) or tostring(value)
end

-- limits = { { name, value }... }: further fields.
function request.line(one, id, limits)
  local words = { one.kind, "id=" .. id }
  for _, list in ipairs { one.fields, limits or {} } do
    for _, field in ipairs(list) do words[#words + 1] = field[1] .. "=" .. text_of(field[2]) end
  end
  return table.concat(words, " ")
end

-- The notes are the last field and go to the line's end.
function request.saved(one, id, threads)
  local line = request.line(one, id, threads and { { "threads", threads } })
  return #one.notes > 0 and ("%s note=%s"):format(line, table.concat(one.notes, "; ")) or line
end

function request.value(one, name)
  local field = sequences.find(one.fields, function(field) return field[1] == name end)
  return field and field[2]
end

function request.read(line)
  local kind = line:match("^([%l_]+) ")
  if not makers[kind] then return nil, "it begins with neither gemm nor convolution" end
  local one, id = { kind = kind, fields = {}, notes = {} }, nil
  local words, note = line:match("^(.-) note=(.*)$")
  if note then one.notes[1] = note end
  for word in (words or line):sub(#kind + 1):gmatch("%S+") do
    local name, value = word:match("^([%l_]+)=(.+)$")
    if not name then return nil, ("%s is not a field name=value"):format(word) end
    if name == "id" then id = value else one.fields[#one.fields + 1] = { name, tonumber(value) or value } end
  end
  if not id then return nil, "it has no id" end
  return one, id
end

return request
