-- Translates PTX to C++: each kernel becomes a function of the same name, which one thread runs with the
-- bytes of its parameters (ptx.h); each instruction becomes a statement.
--
--   gentables lua translate.lua FILE.ptx [PATTERN] > FILE.cpp
--
-- PATTERN: only the kernels with names that match it. An instruction, directive or operand that is not in the
-- tables of forms.lua and operands.lua is an error, which names file, line, kernel and form.
local folder = arg[0]:match("^(.*/)") or ""
local text, operands = dofile(folder .. "text.lua"), dofile(folder .. "operands.lua")
local forms = dofile(folder .. "forms.lua")

-- The operands of an instruction: what is between commas outside of braces and brackets.
local function operands_of(list)
  local all, depth, from = {}, 0, 1
  for at, c in (list .. ","):gmatch("()([%[%]{},])") do
    if c == "," and depth == 0 then
      all[#all + 1] = list:sub(from, at - 1):match("^ *(.-) *$")
      from = at + 1
    elseif c ~= "," then
      depth = depth + ((c == "[" or c == "{") and 1 or -1)
    end
  end
  return list == "" and {} or all
end

local function label_of(name) return (name:gsub("[^%w_]", "")) end

-- The C++ statement of a PTX statement.
local function translated(c, statement)
  local guard, rest = statement:match("^@(!?%%%w+) (.+)$")
  local opcode, list = (rest or statement):match("^([%w_.:]+) ?(.*)$")
  local emit = forms[opcode]
  if not emit then c.fail("unknown instruction form: %s", opcode or statement) end
  local made = emit(c, operands_of(list))
  if not guard then return made end
  return ("if (%s%s) { %s }"):format(guard:match("^!") or "", c:bits(guard:match("%%.*"), 1), made)
end

-- The lines of a kernel's body, and its operands.
local function body_of(ptx, kernel)
  local place
  local c = operands.new(kernel, function(form, ...)
    ptx:fail(place, "%s: %s", kernel.name, form:format(...))
  end)
  local lines = {}
  c.label = label_of
  c:open_scope()
  ptx:each_statement(kernel, function(kind, statement, at)
    place = at
    if kind == "open" then
      c:open_scope()
    elseif kind == "close" then
      c:close_scope()
    elseif kind == "label" then
      lines[#lines + 1] = label_of(statement) .. ":;"
    elseif statement:sub(1, 1) == "." then
      c:declare(statement)
    else
      lines[#lines + 1] = translated(c, statement)
    end
  end)
  return lines, c
end

-- Prints a kernel as a function, and returns its line of the list of kernels.
local function print_kernel(ptx, kernel)
  local lines, c = body_of(ptx, kernel)
  print(("\nextern \"C\" void %s(const void *parameters) {"):format(kernel.name))
  print(("    Thread thread(parameters, %d, %d);"):format(kernel.parameter_bytes, c.shared_bytes))
  for _, register in ipairs(c.used) do
    local type = c.register_type(register.width)
    print(("    %s %s = undefined<%s>;"):format(type, register.name, type))
  end
  print("    " .. table.concat(lines, "\n    ") .. "\n}")
  return ("    {\"%s\", %d, %s},\n"):format(kernel.name, kernel.parameter_bytes, kernel.name)
end

local function translate(path, pattern)
  local ptx, list = text.read(path), {}
  print('#include "ptx.h"')
  ptx:each_kernel(function(kernel)
    if kernel.name:find(pattern) then list[#list + 1] = print_kernel(ptx, kernel) end
  end)
  if #list == 0 then error(("%s: no kernel has a name that matches %s"):format(path, pattern), 0) end
  print(("\nextern const PtxKernel ptx_kernels[] = {\n%s    {nullptr, 0, nullptr},\n};"):format(
    table.concat(list)))
end

local ok, why = pcall(translate, arg[1], arg[2] or ".")
if not ok then
  io.stderr:write("FAILED: ", why, "\n")
  os.exit(1)
end
