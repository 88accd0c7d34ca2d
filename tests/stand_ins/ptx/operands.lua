-- Operands of PTX instructions as C++ expressions. A register is an unsigned integer of its width, or bool
-- for a predicate, and holds the bits of its value; the type of an instruction gives them a meaning.
local operands = {}
operands.__index = operands

local WIDTHS = { pred = 1 }
for _, width in ipairs { 8, 16, 32, 64 } do
  for _, kind in ipairs { "b", "u", "s" } do WIDTHS[kind .. width] = width end
end
WIDTHS.f16, WIDTHS.f32 = 16, 32

-- See tests/stand_ins/engine/layer_on_cpu.h.
local SPECIALS = {
  ["%tid.x"] = "thread_index()", ["%ntid.x"] = "block_size()", ["%ctaid.x"] = "block_index()",
  ["%ctaid.y"] = "rank_index()", ["%nctaid.x"] = "grid_size()", ["%clusterid.x"] = "cluster_index()",
  ["%nclusterid.x"] = "cluster_count()", ["%cluster_ctaid.x"] = "cluster_rank()",
  ["%cluster_nctaid.x"] = "cluster_size()", ["%globaltimer"] = "nanoseconds()",
}

-- The operands of one kernel; fail(FORM, ...) raises an error about its current statement.
function operands.new(kernel, fail)
  return setmetatable({
    kernel = kernel, fail = fail, used = {}, -- all registers that statements use
    scopes = {}, scope_count = 0,            -- the innermost last: name -> { name in C++, width }
    shared = {}, shared_bytes = 0,           -- variables in shared memory: name -> offset
  }, operands)
end

function operands:width_of(type)
  return WIDTHS[type] or self.fail("unknown type: .%s", type)
end

-- The C++ type of a register, and of a value of a type.
function operands.register_type(width)
  return width == 1 and "bool" or ("uint%d_t"):format(width)
end
function operands:value_type(type)
  if type == "f32" then return "float" end
  local width = self:width_of(type)
  return type:sub(1, 1) == "s" and ("int%d_t"):format(width) or self.register_type(width)
end

-- ---- declarations ----------------------------------------------------------------------------

function operands:open_scope()
  self.scopes[#self.scopes + 1] = { number = self.scope_count, ranges = {} }
  self.scope_count = self.scope_count + 1
end
function operands:close_scope() table.remove(self.scopes) end

local function add_register(self, scope, name, width)
  local made = { name = ("%s_%d"):format(name:gsub("[^%w_]", ""), scope.number), width = width }
  scope[name] = made
  self.used[#self.used + 1] = made
  return made
end

local function declare_registers(self, type, names)
  local scope, width = self.scopes[#self.scopes], self:width_of(type)
  for name in names:gmatch("[^, ]+") do
    local stem, count = name:match("^(.-)<(%d+)>$")
    if stem then
      scope.ranges[stem] = { count = tonumber(count), width = width }
    else
      add_register(self, scope, name, width)
    end
  end
end

-- A statement that begins with a period.
function operands:declare(statement)
  local type, names = statement:match("^%.reg %.(%w+) (.+)$")
  local align, name, bytes = statement:match("^%.shared %.align (%d+) %.b8 ([%w_$]+)%[(%d+)%]$")
  if type then
    declare_registers(self, type, names)
  elseif align then
    self.shared[name] = (self.shared_bytes + align - 1) // align * align
    self.shared_bytes = self.shared[name] + bytes
  elseif not statement:find("^%.pragma \"") then -- advice for ptxas
    self.fail("unknown directive: %s", statement)
  end
end

-- ---- reading and writing ---------------------------------------------------------------------

-- The register with a name, NIL if there is none.
function operands:register(name)
  local stem, number = name:match("^(%%%a+)(%d+)$")
  for i = #self.scopes, 1, -1 do
    local scope = self.scopes[i]
    if scope[name] then return scope[name] end
    local range = stem and scope.ranges[stem]
    if range and tonumber(number) < range.count then return add_register(self, scope, name, range.width) end
  end
end

local function constant_of(self, operand, width)
  local of_float = operand:match("^0[fF](%x%x%x%x%x%x%x%x)$")
  if of_float then return ("0x%su"):format(of_float) end
  local number = math.tointeger(tonumber(operand))
  if not number or not operand:find("^%-?%d") then self.fail("unknown operand: %s", operand) end
  return ("%s(0x%xull)"):format(self.register_type(width), number)
end

-- An operand, as an unsigned integer of a width.
function operands:bits(operand, width)
  local register = self:register(operand)
  if register then
    if register.width < width then self.fail("%s has only %d bits", operand, register.width) end
    if register.width == width then return register.name end
    return ("%s(%s)"):format(self.register_type(width), register.name)
  end
  if SPECIALS[operand] then return SPECIALS[operand] end
  if operand == self.kernel.parameter then return "uint64_t(parameters)" end
  if self.shared[operand] then
    return ("%s(%d)"):format(self.register_type(width), self.shared[operand])
  end
  return constant_of(self, operand, width)
end

-- An operand, as a value of a type.
function operands:value(operand, type)
  local bits = self:bits(operand, self:width_of(type))
  if type == "f32" then return ("float_of_bits(%s)"):format(bits) end
  return type == "pred" and bits or ("%s(%s)"):format(self:value_type(type), bits)
end

function operands:destination(operand)
  return self:register(operand) or self.fail("unknown register: %s", operand)
end

-- A C++ statement that stores an expression of a type into a register; `_` takes nothing.
function operands:assign(operand, type, expression)
  if operand == "_" then return "" end
  local to = self:destination(operand)
  if to.width < self:width_of(type) then self.fail("%s is too narrow for .%s", operand, type) end
  if type == "f32" then return ("%s = bits_of_float(%s);"):format(to.name, expression) end
  return ("%s = %s(%s(%s));"):format(to.name, self.register_type(to.width), self:value_type(type), expression)
end

-- The operands of {a, b}, or of a single one.
function operands.vector(operand)
  local all = {}
  for one in operand:gsub("[{}]", ""):gmatch("[^, ]+") do all[#all + 1] = one end
  return all
end

-- The address [base] or [base+offset], with as many bits as addresses of its memory have.
function operands:address(operand, width)
  local base, offset = operand:match("^%[ ?([^%+%] ]+)%+?(%-?%d*) ?%]$")
  if not base then self.fail("unknown address: %s", operand) end
  local type = self.register_type(width)
  return ("%s(%s + %s(%sll))"):format(type, self:bits(base, width), type, offset == "" and "0" or offset)
end

return operands
