-- The instruction forms of PTX that the kernels have, and what each does in C++. The table is closed: a form
-- that is not in it ends the translation.
--
--   forms[OPCODE](operands, list)     returns the C++ statement of an instruction with these operands
--
-- operands.lua turns operands into expressions; ptx.h has the functions that statements call. C++ does not
-- define an overflow of signed integers, so sums and products are those of unsigned ones, which have the same
-- bits.
local forms = {}

-- each("add.%s", "s32 f32", emit): defines add.s32 and add.f32 as emit(operands, list, type).
local function each(opcode, types, emit)
  for type in types:gmatch("%S+") do
    local name = opcode:format(type)
    assert(not forms[name], name)
    forms[name] = function(c, o) return emit(c, o, type) end
  end
end
local function define(opcode, emit) each("%s", opcode, emit) end

local function unsigned(type) return (type:gsub("^[sb](%d)", "u%1")) end

-- TARGET = EXPRESSION, with the other operands, as values of the type, in the places of %s.
local function computes(opcode, types, expression, type_of)
  each(opcode, types, function(c, o, type)
    local of, values = (type_of or unsigned)(type), {}
    for i = 2, #o do values[i - 1] = c:value(o[i], of) end
    return c:assign(o[1], of, expression:format(table.unpack(values)))
  end)
end
local function as_it_is(type) return type end

-- ---- integers and floats ---------------------------------------------------------------------

computes("add.%s", "s16 s32 s64 f32", "%s + %s")
computes("sub.%s", "s32 s64", "%s - %s")
computes("mul.%s", "f32", "%s * %s")
computes("mul.lo.%s", "s32 s64", "%s * %s")
computes("mul.hi.%s", "u32", "uint64_t(%s) * %s >> 32")
computes("mad.lo.%s", "s32 s64", "%s * %s + %s")
computes("and.%s", "b16 b32 b64 pred", "%s & %s")
computes("or.%s", "b16 b32 b64 pred", "%s | %s")
computes("xor.%s", "b32 b64", "%s ^ %s")
computes("not.%s", "b32", "~%s")
computes("not.%s", "pred", "!%s")
computes("neg.%s", "s32 s64", "0 - %s")
computes("fma.rn.%s", "f32", "__builtin_fmaf(%s, %s, %s)")
computes("div.rn.%s", "f32", "%s / %s")
computes("rcp.rn.%s", "f32", "1.0f / %s")
computes("rsqrt.approx.%s", "f32", "reciprocal_square_root(%s)")
computes("div.%s", "u32 u64", "divided(%s, %s)", as_it_is)
computes("min.%s", "s32 u32 u64", "smaller(%s, %s)", as_it_is)
computes("max.%s", "s32 u32 f32", "larger(%s, %s)", as_it_is)

each("mul.wide.%s", "s32 u32", function(c, o, type)
  local wide = type:gsub("32", "64")
  local a, b = c:value(o[2], type), c:value(o[3], type)
  return c:assign(o[1], wide, ("%s(%s) * %s"):format(c:value_type(wide), a, b))
end)
each("shl.%s", "b16 b32 b64", function(c, o, type)
  return c:assign(o[1], type, ("shifted_left(%s, %s)"):format(c:value(o[2], type), c:bits(o[3], 32)))
end)
each("shr.%s", "u16 s32 u32 s64 u64", function(c, o, type)
  return c:assign(o[1], type, ("shifted_right(%s, %s)"):format(c:value(o[2], type), c:bits(o[3], 32)))
end)
define("bfi.b64", function(c, o)
  return c:assign(o[1], "u64", ("with_field(%s, %s, %s, %s)"):format(c:bits(o[3], 64), c:bits(o[2], 64),
    c:bits(o[4], 32), c:bits(o[5], 32)))
end)

-- ---- comparisons -----------------------------------------------------------------------------

local COMPARISONS = {
  eq = { "==", "s16 b32 s32 b64 s64" }, ne = { "!=", "s16 s32 s64" }, lt = { "<", "s32 u32 u64" },
  le = { "<=", "u32 u64" }, gt = { ">", "s32 u32 u64" }, ge = { ">=", "s32 u32 u64" },
}
for name, of in pairs(COMPARISONS) do
  each("setp." .. name .. ".%s", of[2], function(c, o, type)
    return c:assign(o[1], "pred", ("%s %s %s"):format(c:value(o[2], type), of[1], c:value(o[3], type)))
  end)
end
-- A comparison with NaN is false; its opposite is true.
for name, expression in pairs { lt = "%s < %s", geu = "!(%s < %s)" } do
  define(("setp.%s.f32"):format(name), function(c, o)
    return c:assign(o[1], "pred", expression:format(c:value(o[2], "f32"), c:value(o[3], "f32")))
  end)
end

each("selp.%s", "b16 u16 b32 s32 u32 b64 u64 f32", function(c, o, type)
  local yes, no = c:value(o[2], type), c:value(o[3], type)
  return c:assign(o[1], type, ("%s ? %s : %s"):format(c:bits(o[4], 1), yes, no))
end)

-- ---- moves and conversions -------------------------------------------------------------------

-- mov of the parts of a register, the lowest first, or into its parts.
local function moves_parts(c, o, type)
  local to, from, all = c.vector(o[1]), c.vector(o[2]), {}
  local whole = c:width_of(type)
  local width = whole // math.max(#to, #from)
  for i, one in ipairs(#to > 1 and to or from) do
    local at = (i - 1) * width
    all[i] = #to > 1 and c:assign(one, "b" .. width, ("%s >> %d"):format(c:bits(o[2], whole), at)) or
      ("%s(%s) << %d"):format(c.register_type(whole), c:bits(one, width), at)
  end
  return #to > 1 and table.concat(all, " ") or c:assign(o[1], "b" .. whole, table.concat(all, " | "))
end
each("mov.%s", "pred b16 u16 b32 u32 f32 b64 u64", function(c, o, type)
  if #c.vector(o[1]) > 1 or #c.vector(o[2]) > 1 then return moves_parts(c, o, type) end
  return ("%s = %s;"):format(c:destination(o[1]).name, c:bits(o[2], c:width_of(type)))
end)

define("cvta.to.global.u64", function(c, o) return c:assign(o[1], "u64", c:bits(o[2], 64)) end)
for to, sources in pairs { u16 = "u32", u32 = "u16 u64", u64 = "u16 u32", s64 = "s32" } do
  each("cvt." .. to .. ".%s", sources, function(c, o, from)
    return c:assign(o[1], to, ("%s(%s)"):format(c:value_type(to), c:value(o[2], from)))
  end)
end
each("cvt.rn.f32.%s", "s32 u32", function(c, o, from)
  return c:assign(o[1], "f32", ("float(%s)"):format(c:value(o[2], from)))
end)
define("cvt.f32.f16", function(c, o)
  return c:assign(o[1], "f32", ("float_of_float16(%s)"):format(c:bits(o[2], 16)))
end)
-- The first operand becomes the upper half.
local PACKED = {
  ["cvt.rn.bf16x2.f32"] = { "b32", "pack_bfloat16" }, ["cvt.rn.f16x2.f32"] = { "b32", "pack_float16" },
  ["cvt.rn.satfinite.e4m3x2.f32"] = { "b16", "pack_e4m3" },
}
for opcode, of in pairs(PACKED) do
  define(opcode, function(c, o)
    return c:assign(o[1], of[1], ("%s(%s, %s)"):format(of[2], c:value(o[3], "f32"), c:value(o[2], "f32")))
  end)
end

-- ---- memory ----------------------------------------------------------------------------------

-- Accesses move bits, so a float is 32 of them; only a signed integer may be extended.
local function moved(type) return (type:gsub("^f", "b")) end

-- A load into a vector or a single register by `call`, a function of ptx.h.
local function loads(c, o, type, width, call)
  local to, all = c.vector(o[1]), {}
  for i, one in ipairs(to) do all[i] = c:assign(one, moved(type), ("loaded[%d]"):format(i - 1)) end
  return ("{ %s loaded[%d]; %s(%s, loaded); %s }"):format(c:value_type(moved(type)), #to, call,
    c:address(o[2], width), table.concat(all, " "))
end
local function stores(c, o, type, width, call)
  local all = {}
  for i, one in ipairs(c.vector(o[2])) do all[i] = c:bits(one, c:width_of(type)) end
  return ("{ const %s stored[%d] = {%s}; %s(%s, stored); }"):format(c.register_type(c:width_of(type)), #all,
    table.concat(all, ", "), call, c:address(o[1], width))
end

each("ld.param.%s", "u32 s32 f32 u64 v2.u32 v2.f32", function(c, o, type)
  return loads(c, o, type:match("[^.]+$"), 64, "thread.load_parameter")
end)
each("ld.shared.%s", "f32", function(c, o, type) return loads(c, o, type, 32, "thread.load_shared") end)
each("st.shared.%s", "f32", function(c, o, type) return stores(c, o, type, 32, "thread.store_shared") end)
each("st.shared::cluster.%s", "f32", function(c, o, type)
  return stores(c, o, type, 32, "thread.store_in_cluster")
end)

each("ld.global.%s", "u8 u16 u32 f32 v2.u32 v4.u32 v4.f32", function(c, o, type)
  return loads(c, o, type:match("[^.]+$"), 64, "load_global<Order::plain>")
end)
each("st.global.%s", "u8 u16 u32 u64 f32 v4.u32 v4.f32", function(c, o, type)
  return stores(c, o, type:match("[^.]+$"), 64, "store_global<Order::plain>")
end)
-- Of the whole system: ranks are GPUs. The address without a state space is that of pinned memory.
for opcode, order in pairs {
  ["ld.relaxed.sys.u32"] = "relaxed", ["ld.relaxed.sys.global.v4.u32"] = "relaxed",
  ["ld.acquire.sys.global.u32"] = "acquire",
} do
  define(opcode, function(c, o) return loads(c, o, "u32", 64, ("load_global<Order::%s>"):format(order)) end)
end
for opcode, order in pairs {
  ["st.relaxed.sys.global.u32"] = "relaxed", ["st.relaxed.sys.global.v4.u32"] = "relaxed",
  ["st.release.sys.global.u32"] = "release",
} do
  define(opcode, function(c, o) return stores(c, o, "u32", 64, ("store_global<Order::%s>"):format(order)) end)
end

define("atom.global.add.u64", function(c, o)
  return c:assign(o[1], "u64", ("atomic_add(%s, %s)"):format(c:address(o[2], 64), c:bits(o[3], 64)))
end)

-- A sum of 16 bits per element has to be accumulated in fp32.
for of, type in pairs {
  ["v4.f32"] = "Float32", ["acc::f32.v4.bf16x2"] = "Bfloat16", ["acc::f32.v4.f16x2"] = "Float16",
} do
  define("multimem.ld_reduce.relaxed.sys.global.add." .. of, function(c, o)
    return loads(c, o, "b32", 64, ("multimem_load_sum<%s>"):format(type))
  end)
end
define("multimem.st.relaxed.sys.global.v4.f32", function(c, o)
  return stores(c, o, "b32", 64, "multimem_store")
end)

-- ---- other threads ---------------------------------------------------------------------------

define("bar.sync", function(c, o)
  if #o ~= 1 or o[1] ~= "0" then c.fail("a barrier of some threads of the block") end
  return "block_barrier();"
end)
define("barrier.cluster.arrive.release.aligned", function() return "thread.arrive();" end)
define("barrier.cluster.wait.acquire.aligned", function() return "thread.wait();" end)
define("mapa.shared::cluster.u32", function(c, o)
  local call = ("thread.address_in_cluster(%s, %s)"):format(c:bits(o[2], 32), c:bits(o[3], 32))
  return c:assign(o[1], "u32", call)
end)
define("shfl.sync.bfly.b32", function(c, o)
  local to, is_valid = o[1]:match("^([^|]+)|?(.*)$")
  local call = ("shuffled(%s, %s, %s, %s)"):format(c:bits(o[2], 32), c:bits(o[3], 32), c:bits(o[4], 32),
    c:bits(o[5], 32))
  return c:assign(to, "b32", call) .. (is_valid ~= "" and c:assign(is_valid, "pred", "true") or "")
end)
define("fence.proxy.alias", function() return "fence_of_aliases();" end)
define("griddepcontrol.wait", function() return "wait_for_earlier_launches();" end)
define("griddepcontrol.launch_dependents", function() return "let_next_launch_start();" end)

for _, opcode in ipairs { "bra", "bra.uni" } do
  define(opcode, function(c, o) return ("goto %s;"):format(c.label(o[1])) end)
end
define("ret", function() return "return;" end)

return forms
