-- Reads the text of PTX: its kernels, and the statements of a kernel. What it cannot read is an error.
local text = {}

local read = {} -- PTX without comments: { path, text, at = position of the line `line` }
read.__index = read

-- Returns the text of a file, without comments.
function text.read(path)
  local file = assert(io.open(path))
  local all = file:read("a"):gsub("//[^\n]*", "")
  file:close()
  return setmetatable({ path = path, text = all, at = 1, line = 1 }, read)
end

-- Raises an error about the place `at`, which is not before the place of an earlier error or statement.
function read:fail(at, form, ...)
  error(("%s:%d: %s"):format(self.path, self:line_of(at), form:format(...)), 0)
end

function read:line_of(at)
  for _ in self.text:sub(self.at, at - 1):gmatch("\n") do self.line = self.line + 1 end
  self.at = at
  return self.line
end

-- The name, the parameter and its bytes, of a kernel's head.
local function head_of(ptx, at, name, list)
  local parameter, bytes = list:match("^%(%s*%.param%s+%.align%s+%d+%s+%.b8%s+([%w_]+)%[(%d+)%]%s*%)$")
  if not parameter then
    parameter, bytes = list:match("^%(%s*%.param%s+%.u64%s+([%w_]+)%s*%)$"), 8
  end
  if not parameter then ptx:fail(at, "%s has more than one parameter, or one of another kind", name) end
  return { name = name, parameter = parameter, parameter_bytes = math.tointeger(tonumber(bytes)) }
end

-- Calls each(kernel, at): kernel = { name, parameter, parameter_bytes, first, last }, the places between its
-- braces.
function read:each_kernel(each)
  local all, at = self.text, 1
  while true do
    at = all:match("^%s*()", at)
    if at > #all then return end
    local past = all:match("^%.version%s+[%d%.]+()", at) or all:match("^%.target%s+[%w_]+()", at) or
      all:match("^%.address_size%s+64()", at)
    if not past then
      local name, list, limits, body, next =
        all:match("^%.visible%s+%.entry%s+([%w_]+)(%b())([^{]*)()%b{}()", at)
      if not name then self:fail(at, "unknown directive: %s", all:match("^[^\n]*", at)) end
      local other = limits:gsub("%.maxntid%s+[%d, ]+", ""):gsub("%.minnctapersm%s+%d+", ""):match("%S+")
      if other then self:fail(at, "%s: unknown directive: %s", name, other) end
      local kernel = head_of(self, at, name, list)
      kernel.first, kernel.last = body + 1, next - 2
      each(kernel, at)
      past = next
    end
    at = past
  end
end

-- Calls each(kind, text, at) for all parts of a kernel: "open" and "close", the braces of a scope of
-- registers; "label"; "statement", without its semicolon and with single spaces.
function read:each_statement(kernel, each)
  local all, at = self.text, kernel.first
  while true do
    at = all:match("^%s*()", at)
    if at > kernel.last then return end
    local brace, label = all:match("^[{}]", at), all:match("^([%$%w_]+)%s*:", at)
    if brace then
      each(brace == "{" and "open" or "close", brace, at)
      at = at + 1
    elseif label then
      each("label", label, at)
      at = all:match("^[%$%w_]+%s*:()", at)
    else
      local statement, past = all:match("^([^;]*);()", at)
      if not statement then self:fail(at, "a statement without an end") end
      each("statement", statement:gsub("%s+", " "):gsub(" $", ""), at)
      at = past
    end
  end
end

return text
