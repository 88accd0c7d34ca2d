-- Writes PTX that tries the instruction forms of arithmetic on special and random values, for
-- instructions.cpp:
--
--   gentables lua instructions.lua FOLDER    FOLDER/instructions.ptx: a kernel for one warp
--                                            FOLDER/inputs: the words of each thread
--                                            FOLDER/forms: the forms, in the order of results; "f": a float
--
-- A thread has three inputs of 64 bits: a, b, c. A form's signature has a letter for the result and for each
-- operand: of 16 bits h, of 32 bits r, or f if it is the result and a float, of 64 bits d, a predicate p.
-- Operands take a, b and c in this order. Upper-case letters are special: R, D: b, never 0; S: a shift, 0 to
-- 127, from c; A, B: the place and the width of a field, from c.
local THREADS = 32
local FORMS = {
  ["r r r"] = "add.s32 sub.s32 mul.lo.s32 mul.hi.u32 and.b32 or.b32 xor.b32 min.s32 min.u32 max.s32 max.u32",
  ["d d d"] = "add.s64 sub.s64 mul.lo.s64 and.b64 or.b64 xor.b64 min.u64",
  ["r r r r"] = "mad.lo.s32", ["d d d d"] = "mad.lo.s64", ["d r r"] = "mul.wide.s32 mul.wide.u32",
  ["r r R"] = "div.u32", ["d d D"] = "div.u64", ["r r"] = "not.b32 neg.s32", ["d d"] = "neg.s64",
  ["h h h"] = "add.s16 and.b16 or.b16",
  ["r r S"] = "shl.b32 shr.s32 shr.u32", ["d d S"] = "shl.b64 shr.s64 shr.u64", ["h h S"] = "shl.b16 shr.u16",
  ["d d d A B"] = "bfi.b64",
  ["f r r"] = "add.f32 mul.f32 div.rn.f32 max.f32", ["f r r r"] = "fma.rn.f32", ["f r"] = "rcp.rn.f32",
  ["p r r"] = "setp.eq.s32 setp.ne.s32 setp.lt.s32 setp.lt.u32 setp.gt.s32 setp.gt.u32 setp.ge.s32 " ..
    "setp.ge.u32 setp.le.u32 setp.eq.b32 setp.lt.f32 setp.geu.f32",
  ["p d d"] = "setp.eq.s64 setp.ne.s64 setp.lt.u64 setp.le.u64 setp.gt.u64 setp.ge.u64 setp.eq.b64",
  ["p h h"] = "setp.eq.s16 setp.ne.s16", ["p p p"] = "and.pred or.pred", ["p p"] = "not.pred",
  ["h h h p"] = "selp.b16 selp.u16", ["r r r p"] = "selp.b32 selp.s32 selp.u32 selp.f32",
  ["d d d p"] = "selp.b64 selp.u64",
  ["h r"] = "cvt.u16.u32", ["r h"] = "cvt.u32.u16", ["r d"] = "cvt.u32.u64", ["d h"] = "cvt.u64.u16",
  ["d r"] = "cvt.u64.u32 cvt.s64.s32", ["f r "] = "cvt.rn.f32.s32 cvt.rn.f32.u32", ["f h"] = "cvt.f32.f16",
  ["r r r "] = "cvt.rn.bf16x2.f32 cvt.rn.f16x2.f32", ["h r r"] = "cvt.rn.satfinite.e4m3x2.f32",
}
local SPECIAL = { -- floats at the borders of formats, and integers
  0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x807fffff,
  0x00800000, 0x7f7fffff, 0xff7fffff, 0x477fefff, 0x477ff000, 0x33000000, 0x33000001, 0x387fe000, 0x38800000,
  0x43e00000, 0x43e80000, 0x43e80001, 0x3a800000, 0x3f808000, 0x3f818000, 0x3f801000, 0x3f803000, 0x7fffffff,
  0xffffffff, 0x00007c01, 0x000003ff, 0x0000fbff, 0x00010000,
}

-- Every special value, beside others and beside random bits; sometimes a and b are equal.
local function input(thread, place)
  if thread % 8 == 5 and place == 1 then return input(thread, 0) end
  local function special(step) return SPECIAL[(thread * (2 * place + 1) + step) % #SPECIAL + 1] end
  local random = (thread * 3 + place + 1) * 0x9e3779b97f4a7c15
  random = (random ~ random >> 29) * 0xbf58476d1ce4e5b9
  local low = (thread + place) % 4 == 3 and random & 0xffffffff or special(0)
  return low | (thread % 2 == 0 and random >> 32 or special(7)) << 32
end

local REGISTER = { h = "%%rs%d", r = "%%r%d", d = "%%rd%d", p = "%%p%d" }
-- See `head`.
local OPERANDS = { h = { "%rs0", "%rs1" }, r = { "%r0", "%r2", "%r4" }, d = { "%rd2", "%rd3", "%rd4" },
  p = { "%p0", "%p1" }, R = "%r6", D = "%rd5", S = "%r7", A = "%r8", B = "%r9" }
local head = [[
.version 8.0
.target sm_90
.address_size 64
.visible .entry instructions(.param .align 8 .b8 instructions_param_0[16])
.maxntid 32
{
.reg .pred %p<@>; .reg .b16 %rs<@>; .reg .b32 %r<@>; .reg .b64 %rd<@>;
ld.param.u64 %rd0, [instructions_param_0];
ld.param.u64 %rd1, [instructions_param_0+8];
cvta.to.global.u64 %rd0, %rd0;
cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r10, %tid.x;
mul.wide.u32 %rd6, %r10, 32;
add.s64 %rd0, %rd0, %rd6;
mul.wide.u32 %rd6, %r10, 8;
add.s64 %rd1, %rd1, %rd6;
ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd0];
ld.global.v4.u32 {%r4, %r5, %r11, %r12}, [%rd0+16];
mov.b64 %rd2, {%r0, %r1};
mov.b64 %rd3, {%r2, %r3};
mov.b64 %rd4, {%r4, %r5};
cvt.u16.u32 %rs0, %r0;
cvt.u16.u32 %rs1, %r2;
and.b32 %r13, %r1, 1; setp.ne.s32 %p0, %r13, 0;
and.b32 %r13, %r3, 1; setp.ne.s32 %p1, %r13, 0;
or.b32 %r6, %r2, 1;
or.b64 %rd5, %rd3, 1;
and.b32 %r7, %r4, 127;
and.b32 %r8, %r4, 31;
shr.u32 %r13, %r4, 8; and.b32 %r9, %r13, 31;
]]

local lines, forms, number = {}, {}, 20
local function add(form, ...) lines[#lines + 1] = form:format(...) end

-- One instruction, and the store of its result, as 64 bits.
local function try(opcode, signature, operands)
  local kind, at = signature:sub(1, 1), #forms * THREADS * 8
  local letter = kind == "f" and "r" or kind
  local result, wide = REGISTER[letter]:format(number), REGISTER.d:format(number + 1)
  number = number + 2
  add("%s %s%s;", opcode, result, operands)
  if letter == "p" then add("selp.u64 %s, 1, 0, %s;", wide, result) end
  if letter == "h" then add("cvt.u64.u16 %s, %s;", wide, result) end
  if letter == "r" then add("cvt.u64.u32 %s, %s;", wide, result) end
  add("st.global.u64 [%%rd1+%d], %s;", at, letter == "d" and result or wide)
  forms[#forms + 1] = opcode .. (kind == "f" and " f" or "")
end

local signatures = {}
for signature in pairs(FORMS) do signatures[#signatures + 1] = signature end
table.sort(signatures)
for _, signature in ipairs(signatures) do
  for opcode in FORMS[signature]:gmatch("%S+") do
    local operands, place = "", 0
    for letter in signature:sub(2):gmatch("%S") do
      place = place + 1
      local of = OPERANDS[letter]
      if type(of) == "table" then of = of[place] or of[1] end
      operands = operands .. ", " .. of
    end
    try(opcode, signature, operands)
  end
end
for _, mask in ipairs { 1, 2, 4, 8, 16 } do
  try("shfl.sync.bfly.b32", "r", (", %%r0, %d, 31, -1"):format(mask))
end

local function write(name, text)
  local file = assert(io.open(arg[1] .. "/" .. name, "w"))
  assert(file:write(text))
  assert(file:close())
end
local inputs = {}
for thread = 0, THREADS - 1 do
  inputs[#inputs + 1] = ("%016x %016x %016x"):format(input(thread, 0), input(thread, 1), input(thread, 2))
end
write("instructions.ptx", head:gsub("@", number) .. table.concat(lines, "\n") .. "\nret;\n}\n")
write("inputs", table.concat(inputs, "\n") .. "\n")
write("forms", table.concat(forms, "\n") .. "\n")
