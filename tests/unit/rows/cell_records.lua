-- rows.cell_records: the cells of a spec, missing cells, and the order of rows.
local lu = require "luaunit"
local cell_records = require "rows.cell_records"

local TestPlan = {}

local function spec_with(changes)
  local spec = { dtypes = { "bfloat16" }, fusions = { "NONE", "RESIDUAL_RMS_NORM" },
    hidden_sizes = { 64, 128 }, num_tokens = { 1, 4 },
    strategies = { "MPI", "ONESHOT" }, limits = { message_bytes = 1 << 20 },
    table = { op = "allreduce", mode = "eager" } }
  for key, value in pairs(changes or {}) do spec[key] = value end
  return spec
end

function TestPlan.test_every_shape_is_a_cell_in_the_order_of_rows()
  local cells = cell_records.cells(spec_with(), 2)
  lu.assertEquals(#cells, 8)
  for i = 2, #cells do
    lu.assertTrue(cell_records.before(cells[i - 1], cells[i]))
    lu.assertFalse(cell_records.before(cells[i], cells[i - 1]))
  end
end

function TestPlan.test_a_message_is_hidden_size_times_tokens_times_bytes()
  local cells = cell_records.cells(spec_with { dtypes = { "float32" } }, 2)
  lu.assertEquals(cells[#cells].size, 128 * 4 * 4)
end

function TestPlan.test_cells_beyond_the_limit_are_skipped_with_a_reason()
  local spec = spec_with { limits = { message_bytes = 64 * 4 * 2 } }
  local cells = cell_records.cells(spec, 2)
  local skipped = {}
  for _, cell in ipairs(cells) do
    if cell.skip then skipped[#skipped + 1] = cell end
  end
  lu.assertEquals(#skipped, 2)
  lu.assertEquals(skipped[1].hidden_size * skipped[1].num_tokens, 128 * 4)
  lu.assertStrContains(skipped[1].skip, "limit of 512 bytes")
  lu.assertEquals(#cell_records.missing(spec, cells, {}), 6)
end

function TestPlan.test_only_unfinished_cells_are_missing()
  local spec = spec_with()
  local cells = cell_records.cells(spec, 2)
  local done = {}
  for _, cell in ipairs(cells) do done[cell_records.key(cell_records.record(cell, "MPI"))] = true end
  done[cell_records.key(cell_records.record(cells[1], "ONESHOT"))] = true
  local missing = cell_records.missing(spec, cells, done)
  lu.assertEquals(#missing, 7)
  lu.assertEquals(missing[1].strategies, { "ONESHOT" })
  lu.assertEquals(missing[1].cell, cells[2])
end

function TestPlan.test_names_sort_as_in_the_lists()
  local base = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE",
    hidden_size = 64, num_tokens = 1 }
  lu.assertTrue(cell_records.before(cell_records.record(base, "TWOSHOT"),
    cell_records.record(base, "MPI_BASIC_LINEAR")))
  local other = cell_records.record(base, "MPI")
  other.dtype = "float16"
  lu.assertTrue(cell_records.before(cell_records.record(base, "MPI_SM"), other))
end

function TestPlan.test_ranks_on_several_nodes_are_in_cells_of_their_own()
  local one, two = cell_records.cells(spec_with(), 4), cell_records.cells(spec_with(), 4, 2)
  lu.assertEquals(cell_records.cells(spec_with(), 4, 1), one)
  lu.assertNil(one[1].nodes)
  local record = cell_records.record(two[1], "MPI")
  lu.assertEquals({ record.nodes, record.ranks_per_node }, { 2, 2 })
  lu.assertNotEquals(cell_records.key(record), cell_records.key(cell_records.record(one[1], "MPI")))
  lu.assertTrue(cell_records.before(one[#one], two[1]))
  lu.assertFalse(cell_records.before(two[1], one[#one]))
  lu.assertStrContains(cell_records.describe(two[1]), "TP 4 on 2 nodes bfloat16")
  lu.assertStrContains(cell_records.describe(one[1]), "TP 4 bfloat16")
end

return require "suites" { { "TestPlan", TestPlan } }
