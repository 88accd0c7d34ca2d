-- What an artifact answers: compiles the header or table as its users do and asks its own lookup; a table.csv
-- is looked up as the C header looks it up, by the nearest size.
--
--   local answers = ask.artifact("tables/host/allreduce_table.h", shapes)
--
-- shapes are { world_size =, fusion =, hidden_size =, num_tokens = }; answers[i] is { strategy =,
-- measured = }, the strategy nil where the artifact has no answer.
local fail = require "fail"
local file = require "core.file"
local lists = require "lists"
local process = require "core.process"
local tables = require "core.table"
local template = require "template"

local ask = {}

local COMPILE_S, ANSWER_S = 120, 60

-- ---- compiled ---------------------------------------------------------------------------------

local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local handle <close> = assert(io.popen("pwd"))
  return handle:read("l") .. "/" .. path
end

-- Runs a command to its end; its stdout, or nil and why not.
local function run(argv, input, seconds)
  local child, problem = process.start(argv)
  if not child then return nil, problem end
  if input ~= "" then child:write(input, seconds) end
  local lines, deadline = {}, process.now() + seconds
  local line
  repeat
    line, problem = child:read_line(deadline - process.now())
    lines[#lines + 1] = line
  until not line
  local how, well = child:close(problem == "end" and 1 or 0)
  if problem ~= "end" then return nil, ("did not end within %d s"):format(seconds) end
  local errors = child:errors()
  if not well then return nil, ("%s: %s"):format(how, errors:match("[^\n]*error[^\n]*") or errors) end
  return lines
end

-- The lines that a program made of `source` answers to `input`.
local function compile_and_run(path, compiler, suffix, source, input)
  local folder = os.tmpname()
  os.remove(folder)
  fail.unless(file.make_folder(folder))
  local code, program = folder .. "/ask." .. suffix, folder .. "/ask"
  fail.unless(file.write(code, source))
  local lines, problem = run({ compiler, "-O1", "-o", program, code }, "", COMPILE_S)
  local what = "does not compile with " .. compiler
  if lines then
    lines, problem = run({ program }, input, ANSWER_S)
    what = "its lookup did not answer"
  end
  for _, made in ipairs { code, program, folder } do os.remove(made) end
  if not lines then fail.input("%s: %s (%s)", path, what, problem) end
  return lines
end

local function input_of(shapes)
  local place = {}
  for i, fusion in ipairs(lists.fusions) do place[fusion.name] = i - 1 end
  local lines = {}
  for i, shape in ipairs(shapes) do
    lines[i] = ("%d %d %d %d\n"):format(shape.world_size, place[shape.fusion], shape.hidden_size,
      shape.num_tokens)
  end
  lines[#lines + 1] = "0 0 0 0\n"
  return table.concat(lines)
end

local function render(name, model)
  return fail.unless(template.load(gentables.home .. "/templates/regret/" .. name .. ".tmpl"))(model)
end

local function ask_header(path, prefix, shapes)
  local source = render("c", { path = absolute(path), prefix = prefix })
  local answers = compile_and_run(path, os.getenv("CC") or "cc", "c", source, input_of(shapes))
  for i, line in ipairs(answers) do
    local name, measured = line:match("^(%S+) ([01])$")
    answers[i] = { strategy = name, measured = measured == "1" }
  end
  return answers
end

local function ask_trtllm(path, name, shapes)
  local by_number = {}
  for _, strategy in ipairs(lists.strategies) do
    if strategy.trtllm then by_number[strategy.trtllm] = strategy.name end
  end
  local source = render("trtllm", { path = absolute(path), name = name })
  local answers = compile_and_run(path, os.getenv("CXX") or "c++", "cpp", source, input_of(shapes))
  for i, line in ipairs(answers) do
    answers[i] = { strategy = by_number[tonumber(line)], measured = tonumber(line) ~= -1 }
  end
  return answers
end

-- ---- loaded -----------------------------------------------------------------------------------

-- The value of an ascending axis that is nearest as a ratio, the smaller of two that are as near.
local function nearest(axis, value)
  for i = 1, #axis - 1 do
    if value * value <= axis[i] * axis[i + 1] then return axis[i] end
  end
  return axis[#axis]
end

local function ask_table(path, shapes)
  local table_of, problem = tables.read(path)
  if not table_of then fail.input("%s", problem) end
  local blocks, answers = {}, {}
  for _, block in ipairs(table_of:blocks()) do
    blocks[block.world_size] = blocks[block.world_size] or block
  end
  for i, shape in ipairs(shapes) do
    local block = blocks[shape.world_size]
    local cell = block and lists.contains(block.fusions, shape.fusion) and table_of:find {
      world_size = block.world_size, dtype = block.dtype, op = block.op, mode = block.mode,
      fusion = shape.fusion, hidden_size = nearest(block.hidden_sizes, shape.hidden_size),
      num_tokens = nearest(block.num_tokens, shape.num_tokens) }
    answers[i] = { strategy = cell and cell.strategy or nil, measured = cell ~= nil and cell ~= false }
  end
  return answers
end

-- ---- which ------------------------------------------------------------------------------------

-- Asks the artifact at `path`, told by what it holds. Raises where it is none.
function ask.artifact(path, shapes)
  local text = fail.unless(file.read(path))
  local prefix = text:match("static inline enum ([%w_]+)_strategy [%w_]+_select%(")
  if prefix then return ask_header(path, prefix, shapes) end
  local name = text:match("AllReduceBestStrategyTableType%s+(AllReduceBestStrategyTableSM%d+)%s*=")
  if name then return ask_trtllm(path, name, shapes) end
  if text:find("^arch,world_size,") then return ask_table(path, shapes) end
  fail.input("%s: is none of allreduce_table.h, generated_lookup_table.cpp and table.csv", path)
end

return ask
