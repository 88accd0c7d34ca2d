-- predict/: times on more nodes than were measured, from rows with known parameters of Hockney's model; and
-- where nothing is predicted. Takes a folder to write to.
local fail = require "base.fail"
local file = require "core.file"
local growth = require "predict.growth"
local held_out = require "predict.held_out"
local lists = require "lists.lists"
local luaunit = require "luaunit"
local model = require "formats.model"
local predictions = require "predict.predictions"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local spec = require "rows.spec"

local root = os.getenv "WORK"
local tests = {}

local TOKENS, HIDDEN_SIZE, BYTES = { 4, 16, 64, 256, 1024 }, 1024, 2
local LATENCY_US, BYTES_PER_US, NOISE = 40, 100, 0.02
local ALONE_US = 1 -- on one node

-- The law of each strategy in these rows; MPI decides for recursive doubling.
local LAWS = { MPI = "recursive_doubling", MPI_RECURSIVE_DOUBLING = "recursive_doubling", MPI_RING = "ring",
  MPI_RABENSEIFNER = "halving", TWOLEVEL = "pieces" }
local FACTORS = { TWOLEVEL = 1.3 } -- others: 1

-- The time by the model.
local function truth(strategy, nodes, tokens, ranks_per_node)
  local law = growth.laws[LAWS[strategy]]
  local bytes = tokens * HIDDEN_SIZE * BYTES
  return (FACTORS[strategy] or 1) * (LATENCY_US * law.steps(nodes, ranks_per_node)
    + bytes / BYTES_PER_US * law.volume(nodes, ranks_per_node))
end

-- Noise from -1 to 1 that depends on its arguments only.
local function noise_of(...)
  local state = 12345
  for byte in table.concat({ ... }, " "):gmatch(".") do
    state = (state * 1103515245 + byte:byte()) % (1 << 31)
  end
  return state / (1 << 30) - 1
end

local function record(strategy, nodes, tokens, ranks_per_node, time_us)
  return { world_size = nodes * ranks_per_node, dtype = "bfloat16", size = tokens * HIDDEN_SIZE * BYTES,
    num_tokens = tokens, hidden_size = HIDDEN_SIZE, strategy = strategy, fusion = "NONE", op = "allreduce",
    time_us = time_us, low_us = time_us * (1 - NOISE), high_us = time_us * (1 + NOISE), mode = "eager",
    placement = "dedicated", nodes = nodes > 1 and nodes or nil,
    ranks_per_node = nodes > 1 and ranks_per_node or nil }
end

local function write_spec(counts, ranks_per_node, predict)
  local sizes = {}
  for i, nodes in ipairs(counts) do sizes[i] = nodes * ranks_per_node end
  assert(file.write(root .. "/spec.lua", ([[return { arch = "host", tp = { %s }, nodes = { %s },
    ranks_per_node = %d, predict = { %s }, fusions = { "NONE" }, hidden_sizes = { %d }, num_tokens = { %s },
    strategies = { "MPI", "MPI_RECURSIVE_DOUBLING", "MPI_RING", "MPI_RABENSEIFNER", "TWOLEVEL" } }
    ]]):format(table.concat(sizes, ","), table.concat(counts, ","), ranks_per_node,
    table.concat(predict, ","), HIDDEN_SIZE, table.concat(TOKENS, ","))))
end

-- A source of rows on these numbers of nodes. options: ranks_per_node (default 1); predict (default 6);
-- change(strategy, nodes, tokens) -> factor of the time.
local function source_of(counts, options)
  options = options or {}
  os.execute(("rm -rf '%s'"):format(root)) -- of an earlier test
  assert(file.make_folder(root))
  local ranks_per_node = options.ranks_per_node or 1
  for _, nodes in ipairs(counts) do
    local records = {}
    for _, tokens in ipairs(TOKENS) do
      for _, strategy in ipairs(lists.names "strategies") do
        if LAWS[strategy] then
          local time_us = (nodes == 1 and ALONE_US or truth(strategy, nodes, tokens, ranks_per_node))
            * (1 + NOISE * noise_of(strategy, nodes, tokens))
          local factor = options.change and options.change(strategy, nodes, tokens) or 1
          records[#records + 1] = record(strategy, nodes, tokens, ranks_per_node, factor * time_us)
        end
      end
    end
    local name = rank_placement.file_name(nodes * ranks_per_node, nodes, "host")
    local csv = root .. "/" .. name .. ".csv"
    assert(file.write(csv, assert(rows.text(csv, records))))
  end
  write_spec(counts, ranks_per_node, options.predict or { 6 })
  return model.load(root, "host", { against = "none" })
end

-- "TOKENS STRATEGY" -> record, of one number of nodes
local function times_of(source, nodes)
  local out = {}
  for _, time in ipairs(predictions.times(source)) do
    if time.nodes == nodes then out[time.num_tokens .. " " .. time.strategy] = time end
  end
  return out
end

-- The mean loss, by the model, of the choices of a table at `nodes`.
local function mean_loss(source, nodes, ranks_per_node)
  local sum = 0
  for _, tokens in ipairs(TOKENS) do
    local cell = model.canonical(source):find { world_size = nodes * ranks_per_node, nodes = nodes,
      dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE", hidden_size = HIDDEN_SIZE,
      num_tokens = tokens }
    luaunit.assertEquals({ cell.predicted, cell.derived, cell.state }, { true, false, "uncertain" })
    luaunit.assertTrue(cell.low_us < cell.time_us and cell.time_us < cell.high_us)
    local least = math.huge
    for name in pairs(LAWS) do least = math.min(least, truth(name, nodes, tokens, ranks_per_node)) end
    sum = sum + truth(cell.strategy, nodes, tokens, ranks_per_node) / least - 1
  end
  return sum / #TOKENS
end

function tests.test_known_parameters_are_found()
  for _, ranks_per_node in ipairs { 1, 4 } do
    local source = source_of({ 2, 3, 4 }, { ranks_per_node = ranks_per_node, predict = { 6, 8, 16 } })
    for _, nodes in ipairs { 6, 8, 16 } do
      for key, time in pairs(times_of(source, nodes)) do
        local is = truth(time.strategy, nodes, time.num_tokens, ranks_per_node)
        luaunit.assertTrue(time.low_us <= is and is <= time.high_us, key)
      end
      luaunit.assertTrue(mean_loss(source, nodes, ranks_per_node) <= 0.05, nodes)
    end
  end
end

-- At 1,024 tokens the ring is far better than recursive doubling; at 4 tokens a difference of 2 % is none.
function tests.test_only_a_sure_gain_replaces_the_librarys_decision()
  local times = times_of(source_of { 2, 3, 4 }, 6)
  luaunit.assertNotNil(times["1024 MPI"])
  luaunit.assertNotNil(times["1024 MPI_RING"])
  luaunit.assertNotNil(times["4 MPI"])
  luaunit.assertNil(times["4 MPI_RECURSIVE_DOUBLING"])
end

function tests.test_a_kink_is_not_predicted()
  local found = predictions.of_source(source_of({ 2, 3, 4 }, { change = function(strategy, nodes)
    return strategy == "MPI_RING" and nodes == 3 and 3 or 1
  end }))
  luaunit.assertEquals(found.blocks[1].kinks, #TOKENS)
  for _, time in ipairs(found.times) do luaunit.assertNotEquals(time.strategy, "MPI_RING") end
  luaunit.assertEquals({ found.blocks[1].shapes, found.blocks[1].without }, { #TOKENS, 0 })
end

-- Without the time of the library's decision no gain is known, so its decision stays: the cell has no choice.
function tests.test_without_the_librarys_time_there_is_no_choice()
  local source = source_of({ 2, 3, 4 }, { change = function(strategy, nodes, tokens)
    return strategy == "MPI" and nodes == 3 and tokens == 64 and 20 or 1
  end })
  luaunit.assertEquals(predictions.of_source(source).blocks[1].without, 1)
  local key = { world_size = 6, nodes = 6, dtype = "bfloat16", op = "allreduce", mode = "eager",
    fusion = "NONE", hidden_size = HIDDEN_SIZE, num_tokens = 64 }
  luaunit.assertNil(model.canonical(source):find(key))
  key.num_tokens = 256
  luaunit.assertNotNil(model.canonical(source):find(key))
end

function tests.test_too_few_numbers_of_nodes_predict_nothing()
  local found = predictions.of_source(source_of { 2, 4 })
  luaunit.assertEquals(#found.times, 0)
  luaunit.assertEquals(found.refused, { "6 nodes with 1 rank on each: rows of 3 numbers of nodes from 2 on "
    .. "are required, and there are 2" })
end

function tests.test_far_numbers_of_nodes_are_not_predicted()
  local found = predictions.of_source(source_of({ 2, 3, 4 }, { predict = { 17 } }))
  luaunit.assertEquals(#found.times, 0)
  luaunit.assertStrContains(found.refused[1], "more than 4 times the largest measured number of nodes, 4")
end

-- The times of one node are of another regime: they change nothing, and do not count among the three.
function tests.test_one_node_is_another_regime()
  local options = { ranks_per_node = 2 }
  local with = times_of(source_of({ 1, 2, 3, 4 }, options), 6)
  luaunit.assertEquals(with, times_of(source_of({ 2, 3, 4 }, options), 6))
  luaunit.assertEquals(#predictions.times(source_of({ 1, 2, 3 }, options)), 0)
end

function tests.test_the_largest_number_of_nodes_is_held_out()
  local judged = held_out.of_source(source_of({ 2, 3, 4, 6 }, { predict = { 8 } }))
  luaunit.assertEquals(#judged, 1)
  local result = judged[1]
  luaunit.assertEquals({ result.nodes, result.from, result.shapes }, { 6, { 2, 3, 4 }, #TOKENS })
  luaunit.assertTrue(result.mean <= 0.05, result.mean)
  luaunit.assertTrue(result.library > 0.3, result.library)
  luaunit.assertEquals(result.inside, result.predicted)
  -- What was held out has no part in the prediction: TWOLEVEL stays the choice, and loses.
  judged = held_out.of_source(source_of({ 2, 3, 4, 6 }, { predict = { 8 }, change = function(strategy, nodes)
    return nodes == 6 and strategy ~= "MPI" and 100 or 1
  end }))
  luaunit.assertTrue(judged[1].mean > 1, judged[1].mean)
  luaunit.assertEquals(judged[1].library, 0)
  luaunit.assertTrue(judged[1].certain > 0 and judged[1].certain < judged[1].mean)
end

function tests.test_numerics_restrict_predictions()
  source_of { 2, 3, 4 }
  local source = model.load(root, "host", { against = "none", numerics = "same-as=MPI" })
  for _, block in ipairs(model.canonical(source):blocks()) do
    if block.nodes == 6 then luaunit.assertEquals(block.world_size, 6) end
  end
  local cell = model.canonical(source):find { world_size = 6, nodes = 6, dtype = "bfloat16",
    op = "allreduce", mode = "eager", fusion = "NONE", hidden_size = HIDDEN_SIZE, num_tokens = 1024 }
  luaunit.assertEquals(cell.strategy, "MPI")
end

function tests.test_measured_numbers_of_nodes_are_not_predicted()
  source_of { 2, 3, 4 }
  write_spec({ 2, 3, 4 }, 1, { 4 })
  local ok, problem = pcall(spec.load, root .. "/spec.lua")
  luaunit.assertFalse(ok)
  luaunit.assertStrContains(fail.of(problem).message,
    "spec.lua:2: predict has 4; valid are numbers of nodes above the largest measured one, 4")
end

-- Rows do not depend on predictions, so another list of them measures nothing again.
function tests.test_predictions_do_not_change_the_hash_of_a_spec()
  source_of { 2, 3, 4 }
  local one = spec.load(root .. "/spec.lua")
  write_spec({ 2, 3, 4 }, 1, { 8, 12 })
  local other = spec.load(root .. "/spec.lua")
  luaunit.assertEquals(other.predict, { 8, 12 })
  luaunit.assertEquals(provenance.spec_hash(one), provenance.spec_hash(other))
end

function tests.test_laws()
  local expected = {
    ring = { 10, 5 / 3 }, pieces = { 10, 5 / 3 }, whole = { 5, 5 }, recursive_doubling = { 4, 4 },
    halving = { 7, 3.5 }, linear = { 10, 10 }, tree = { 6, 6 }, pipelined_tree = { 6, 2 },
  }
  for _, law in ipairs(growth.laws) do
    luaunit.assertAlmostEquals(law.steps(6, 1), expected[law.name][1], 1e-9, law.name)
    luaunit.assertAlmostEquals(law.volume(6, 1), expected[law.name][2], 1e-9, law.name)
    for _, ranks_per_node in ipairs { 1, 2, 4 } do -- a power of two of ranks: no first and last step
      if law.name == "recursive_doubling" then luaunit.assertEquals(law.steps(8, ranks_per_node), 3) end
    end
  end
  for name in pairs(growth.strategies) do luaunit.assertNotNil(lists.find("strategies", name), name) end
end

return require "suites" { { "Predictions", tests } }
