-- Looks shapes up in an artifact: compiles a header as its users do, and calls its own lookup. A table.csv is
-- looked up by the nearest size, as in the C header; thresholds.json by bytes.
--
--   local answers, facts = lookup.artifact("tables/host/allreduce_table.h", shapes, { sm = 90 })
--
-- shapes are { world_size =, nodes = (nil: 1), dtype =, op =, mode =, fusion =, hidden_size =, num_tokens =
-- }. answers[i] is { strategy =, measured =, cell = }: strategy is nil if the artifact has no answer. cell is
-- a text, the same for all shapes with a common choice; nil if there is none or it is unknown. facts: { cells
-- = whether answers have cells, dtype =, op =, fusion = of all that it holds, or nil }. The options: sm, for
-- headers that hold several, and unconfined = whether the compiled code runs with all rights of the user.
local cell_records = require "rows.cell_records"
local compiled = require "consult.compiled"
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local lookup_rule = require "core.lookup_rule"
local process = require "core.process"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local tables = require "core.table"
local thresholds = require "consult.thresholds"

local lookup = {}

local ANSWER_S = 60

-- ---- compiled ---------------------------------------------------------------------------------

-- The lines that a compiled program prints for `input`; `what`: as in compiled.make, without `words`.
local function compile_and_run(path, what, input, options)
  local confined = not options.unconfined
  if confined and not process.can_confine() then
    fail.input("%s: its lookup is code, and this system cannot confine it (no seccomp filters); --unconfined "
      .. "runs it with all your rights", path)
  end
  what.words = { "-O1" }
  local made <close> = compiled.make(path, what)
  local lines, problem = compiled.run({ made.path }, { input = input, seconds = ANSWER_S,
    rights = confined and "confined" or nil })
  if not lines then fail.input("%s: its lookup did not answer (%s)", path, problem) end
  return lines
end

-- Lines with the numbers of shapes, and an end; `with_nodes`: with their nodes.
local function input_of(shapes, with_nodes)
  local index_of = sequences.indices(lists.names "fusions")
  local lines = sequences.map(shapes, function(shape)
    return ("%s%d %d %d %d\n"):format(with_nodes and (shape.nodes or 1) .. " " or "", shape.world_size,
      index_of[shape.fusion] - 1, shape.hidden_size, shape.num_tokens)
  end)
  lines[#lines + 1] = "0 0 0 0 0\n"
  return table.concat(lines)
end

local function render(name, model) return compiled.render("regret/" .. name, model) end

-- The data type and operation in the first lines of a C header.
local function said_of(text)
  local dtype, op = text:match("should take: ([%w_]+), ([%w_]+), TP ")
  return { cells = true, dtype = dtype, op = op }
end

local function look_up_header(path, text, prefix, shapes, options)
  local facts = said_of(text)
  facts.cells = text:find("struct " .. prefix .. "_row", 1, true) ~= nil
  local source = render("c", { path = compiled.absolute(path), prefix = prefix, prints_cells = facts.cells,
    has_nodes = text:find(prefix .. "_select_nodes", 1, true) ~= nil,
    has_predicted = text:find(prefix .. "_is_predicted_nodes", 1, true) ~= nil })
  local answers = compile_and_run(path, { compiler = os.getenv("CC") or "cc", suffix = "c",
    source = source }, input_of(shapes, true), options)
  for i, line in ipairs(answers) do
    local name, measured, cell = line:match("^(%S+) ([01]) (%S+)$")
    local is_cell = cell ~= "-" and cell ~= "-1"
    answers[i] = { strategy = name ~= "-" and name or nil, measured = measured == "1",
      cell = is_cell and cell or nil }
  end
  return answers, facts
end

local strategy_by_number = lists.trtllm_strategies()

-- Lines of a number and a cell to answers. TensorRT-LLM's tables have none for shapes of several nodes.
local function numbers_to_answers(lines, shapes)
  return sequences.map(lines, function(line, i)
    local number, cell = line:match("^(%S+) (%S+)$")
    local is_known = not rank_placement.spans(shapes[i].nodes)
    return not is_known and { measured = false }
      or { strategy = strategy_by_number[tonumber(number)], measured = cell ~= "-1",
      cell = cell ~= "-1" and cell or nil }
  end)
end

local function look_up_fragment(path, name, shapes, options)
  local source = render("trtllm", { path = compiled.absolute(path), name = name })
  local lines = compile_and_run(path, { compiler = os.getenv("CXX") or "c++", suffix = "cpp",
    source = source }, input_of(shapes), options)
  return numbers_to_answers(lines, shapes), { cells = true }
end

local function look_up_trtllm_header(path, text, shapes, options)
  local sm = options.sm
  if not sm then
    fail.input("%s: has several SM versions, and no file of rows is named after one; " ..
      "select one, as in --sm 90", path)
  end
  local has_axes = text:find("AllReduceTableAxesOf", 1, true) ~= nil
  local source = render("trtllm_header", { path = compiled.absolute(path), sm = sm, has_axes = has_axes,
    fusions = lists.fusions })
  local lines = compile_and_run(path, { compiler = os.getenv("CXX") or "c++", suffix = "cpp",
    source = source, others = compiled.trtllm_stubs(text, sm) }, input_of(shapes), options)
  return numbers_to_answers(lines, shapes), { cells = true }
end

-- ---- loaded -----------------------------------------------------------------------------------

-- The block of a table in which a shape is looked up: its own; else one of its placement, as in other
-- formats.
local function block_for(blocks, shape)
  local other
  for _, block in ipairs(blocks) do
    local is_placed = block.world_size == shape.world_size and block.nodes == (shape.nodes or 1)
    if is_placed and lists.contains(block.fusions, shape.fusion) then
      local same = block.dtype == shape.dtype and block.op == shape.op
      if same and block.mode == shape.mode then return block end
      if same then other = other or block end
    end
  end
  return other
end

local function look_up_table(path, shapes)
  local table_of = fail.unless(tables.read(path))
  local blocks, answers = table_of:blocks(), {}
  for i, shape in ipairs(shapes) do
    local block = block_for(blocks, shape)
    local at = block and { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype,
      op = block.op, mode = block.mode, fusion = shape.fusion,
      hidden_size = block.hidden_sizes[lookup_rule.nearest(block.hidden_sizes, shape.hidden_size)],
      num_tokens = block.num_tokens[lookup_rule.nearest(block.num_tokens, shape.num_tokens)] }
    local cell = at and table_of:find(at)
    answers[i] = { strategy = cell and cell.strategy, measured = cell ~= nil,
      cell = cell and cell_records.key(at) }
  end
  return answers, { cells = true }
end

local function look_up_thresholds(path, text, shapes)
  local document = thresholds.read(path, text)
  local answers = sequences.map(shapes, function(shape)
    local bytes = shape.hidden_size * shape.num_tokens * lists.find("dtypes", shape.dtype).bytes
    local rule, index = thresholds.rule_of(document, shape.world_size, bytes, shape.nodes)
    return { strategy = rule and rule.strategy or document.fallback, measured = rule ~= nil,
      cell = rule and rank_placement.words(shape.world_size, shape.nodes) .. " " .. index }
  end)
  return answers, { cells = true, dtype = document.dtype, op = document.op, fusion = "NONE" }
end

-- ---- which ------------------------------------------------------------------------------------

-- Looks the shapes up in the artifact at `path`; the format is found from its content. Raises if it is no
-- artifact.
function lookup.artifact(path, shapes, options)
  local text = fail.unless(file.read(path))
  local prefix = compiled.prefix_of(text)
  if prefix then return look_up_header(path, text, prefix, shapes, options) end
  if compiled.is_trtllm_header(text) then
    return look_up_trtllm_header(path, text, shapes, options)
  end
  local name = text:match("AllReduceBestStrategyTableType%s+(AllReduceBestStrategyTableSM%d+)%s*=")
  if name then return look_up_fragment(path, name, shapes, options) end
  if text:find("^arch,world_size,") then return look_up_table(path, shapes) end
  if text:find('"gentables thresholds"', 1, true) then return look_up_thresholds(path, text, shapes) end
  fail.input("%s: is none of allreduce_table.h, customAllReduceUtils.h, generated_lookup_table.cpp, " ..
    "thresholds.json and table.csv", path)
end

return lookup
