-- core.rows and core.table together: rows are written and read back, candidates are selected, the table is
-- read back. Takes a folder to write to.
local choices = require "core.choose"
local columns = require "lists.columns"
local file = require "core.file"
local lists = require "lists.lists"
local luaunit = require "luaunit"
local pooling = require "sweep.pooling"
local rows = require "core.rows"
local tables = require "core.table"

local folder = os.getenv "WORK"
assert(file.make_folder(folder))
local tests = {}

-- A record of our own files, with these fields changed, and the size of its tokens.
local function record(changes)
  local made = { world_size = 2, dtype = "bfloat16", num_tokens = 1, hidden_size = 1024,
    strategy = "ONESHOT", fusion = "NONE", op = "allreduce", time_us = 4.5, low_us = 4.25, high_us = 4.75,
    samples = 20, min_us = 4, p95_us = 6, p99_us = 7, skew_us = 0, bound_us = 1.5, mode = "eager",
    accumulate = "fp32", placement = "dedicated" }
  for key, value in pairs(changes or {}) do made[key] = value end
  local bytes = lists.find("dtypes", made.dtype).bytes
  made.size = made.size or made.num_tokens * made.hidden_size * bytes
  return made
end

-- Cells as a spec has them, with these fields changed.
local function cells(changes)
  local made = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager", fusions = { "NONE" },
    hidden_sizes = { 1024 } }
  for key, value in pairs(changes) do made[key] = value end
  return made
end

local function write(path, records) assert(file.write(path, assert(rows.text(path, records)))) end

-- The table of these records.
local function select(records, options)
  local path = folder .. "/rows.csv"
  write(path, records)
  return choices.select(assert(rows.read { path }), options)
end

function tests.test_records_come_back_as_they_were_written()
  local path = folder .. "/records.csv"
  local plain = record { strategy = "MPI", samples = false, skew_us = false, accumulate = false }
  for key, value in pairs(plain) do
    if value == false then plain[key] = nil end
  end
  local written = { record(), plain }
  write(path, written)
  luaunit.assertEquals(rows.records(path), { plain, record() }) -- MPI stands before ONESHOT in the list
  luaunit.assertEquals(#assert(rows.read { path }), 2)
end

function tests.test_varying_bits_differ_from_unknown_bits()
  local path, hash = folder .. "/bits.csv", "000000000000000a"
  local written = { record { num_tokens = 1, bits = hash }, record { num_tokens = 2, bits = "varies" },
    record { num_tokens = 3 } }
  write(path, written)
  luaunit.assertEquals(rows.records(path), written)
end

function tests.test_rows_are_written_in_the_order_of_the_lists()
  local path, wanted, shuffled = folder .. "/order.csv", {}, {}
  for _, tp in ipairs { 2, 4 } do
    for _, fusion in ipairs { "NONE", "RESIDUAL_RMS_NORM_QUANT_FP8" } do
      for _, hidden in ipairs { 256, 1024 } do
        for _, strategy in ipairs { "MPI", "ONESHOT", "NCCL" } do
          local made = record { world_size = tp, fusion = fusion, hidden_size = hidden, strategy = strategy }
          wanted[#wanted + 1] = made
          table.insert(shuffled, #shuffled // 2 + 1, made)
        end
      end
    end
  end
  local written = assert(rows.text(path, shuffled))
  luaunit.assertEquals(rows.text(path, wanted), written)
  local order = {}
  for line in written:gmatch("\n(%d[^\n]*)") do
    local fields = {}
    for field in line:gmatch("[^,]+") do fields[#fields + 1] = field end
    order[#order + 1] = table.concat({ fields[1], fields[7], fields[5], fields[6] }, " ")
  end
  for i, made in ipairs(wanted) do
    local expected = { made.world_size, made.fusion, made.hidden_size, made.strategy }
    luaunit.assertEquals(order[i], table.concat(expected, " "))
  end
end

function tests.test_invalid_rows_are_not_written()
  local path = "rows.csv"
  for _, changes in ipairs { { time_us = 0 }, { time_us = 0 / 0 }, { time_us = 1 / 0 }, { strategy = "BEST" },
    { num_tokens = 0, size = 1 }, { num_tokens = 1.5, size = 1 }, { low_us = -1 },
    { mode = false }, { accumulate = "fp64" } } do
    local text, message = rows.text(path, { record(), record(changes) })
    luaunit.assertNil(text)
    changes.size = nil
    luaunit.assertStrContains(message, path .. ": row 2 cannot be written: its " .. next(changes))
  end
  local text, message = rows.text(path, { record(), record() })
  luaunit.assertNil(text)
  luaunit.assertStrContains(message, "two rows of ONESHOT")
end

function tests.test_a_cell_without_a_time_is_unmeasured()
  local made = select { record(), record { hidden_size = 4096, num_tokens = 16, strategy = "MPI" } }
  luaunit.assertEquals(made:winners(1, 1, 1), { 2, 0 })
  luaunit.assertEquals(made:winners(1, 1, 2), { 0, 1 })
  luaunit.assertNil(made:cell(1, 1, 1, 2))
  luaunit.assertStrContains(made:text("host"),
    "\nhost,2,NONE,bfloat16,allreduce,eager,1024,16,unmeasured,,,,,,,,\n")
end

function tests.test_cells_of_the_spec_exist()
  local made = select({ record() }, { cells = {
    cells { world_size = 4, dtype = "float32", fusions = { "NONE", "RESIDUAL_RMS_NORM" },
      hidden_sizes = { 512 }, num_tokens = { 1, 8, 2 } },
    cells { dtype = "bf16", hidden_sizes = { 2048 }, num_tokens = { 1 } } } })
  local blocks = made:blocks()
  luaunit.assertEquals(blocks[1].hidden_sizes, { 1024, 2048 })
  luaunit.assertEquals(blocks[2].world_size, 4)
  luaunit.assertEquals(blocks[2].fusions, { "NONE", "RESIDUAL_RMS_NORM" })
  luaunit.assertEquals(blocks[2].num_tokens, { 1, 2, 8 })
  luaunit.assertEquals(made:winners(2, 2, 1), { 0, 0, 0 })
end

function tests.test_dtype_op_and_mode_are_part_of_the_cell()
  local made = select { record { time_us = 4.5 }, record { dtype = "float32", strategy = "MPI" },
    record { op = "gemm_allreduce", strategy = "MPI" }, record { mode = "graph", strategy = "MPI" } }
  luaunit.assertEquals(#made:blocks(), 4)
  local found = made:find { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
    fusion = "NONE", hidden_size = 1024, num_tokens = 1 }
  luaunit.assertEquals(found.strategy, "ONESHOT")
  luaunit.assertNil(found.runner_up)
end

function tests.test_auto_never_wins()
  local made = select { record { strategy = "AUTO" }, record { strategy = "MPI", time_us = 4.75 } }
  luaunit.assertEquals(made:cell(1, 1, 1, 1).strategy, "MPI")
  luaunit.assertNil(made:cell(1, 1, 1, 1).runner_up)
  luaunit.assertEquals(made:left_out().strategies, { AUTO = 1 })
  local alone = select { record { strategy = "AUTO" } }
  luaunit.assertNil(alone:cell(1, 1, 1, 1))
end

function tests.test_the_runner_up_wins_where_the_winner_cannot_be_named()
  local records = { record { strategy = "SYMM_MEM" }, record { strategy = "MPI", low_us = 4, time_us = 5,
    high_us = 6 }, record { strategy = "NCCL", low_us = 7, time_us = 8, high_us = 9 } }
  local made = select(records, { candidates = { "NCCL", "MPI" } })
  luaunit.assertEquals(made:cell(1, 1, 1, 1).strategy, "MPI")
  luaunit.assertEquals(made:cell(1, 1, 1, 1).runner_up, "NCCL")
  luaunit.assertEquals(made:left_out().strategies, { SYMM_MEM = 1 })
end

function tests.test_loopback_rows_compete_only_where_they_may()
  local records = { record { placement = "loopback" }, record { strategy = "NCCL", time_us = 4.75 } }
  luaunit.assertEquals(select(records):cell(1, 1, 1, 1).strategy, "NCCL")
  luaunit.assertEquals(select(records):left_out().loopback, 1)
  luaunit.assertEquals(select(records, { loopback = true }):cell(1, 1, 1, 1).strategy, "ONESHOT")
end

function tests.test_a_derived_time_is_of_the_placement_it_follows_from()
  local function select_with(placement, options)
    local derived = record { num_tokens = 16, placement = placement, spread = 0.1, noise = 0.1 }
    options.derived = { derived }
    options.cells = { cells { num_tokens = { 1, 16 } } }
    return select({ record { placement = "oversubscribed" } }, options):cell(1, 1, 1, 2)
  end
  local cell = select_with("oversubscribed", {})
  luaunit.assertEquals({ cell.strategy, cell.placement, cell.derived },
    { "ONESHOT", "oversubscribed", true })
  luaunit.assertNil(select_with("loopback", {}))
  luaunit.assertEquals(select_with("loopback", { loopback = true }).placement, "loopback")
end

-- The choice of 1024 at 16 tokens in a grid of 1, 16 and 256, with these records between its lines, too.
local function with_records_beside(beside, options)
  local records = {}
  for _, num_tokens in ipairs { 1, 16, 256 } do
    for strategy, time_us in pairs { ONESHOT = 10, TWOSHOT = 10.02 } do
      records[#records + 1] = record { strategy = strategy, num_tokens = num_tokens, time_us = time_us,
        low_us = time_us - 1, high_us = time_us + 1, size = 2048 * num_tokens, bits = ("0a"):rep(8) }
    end
  end
  table.move(beside, 1, #beside, #records + 1, records)
  options.only_cells, options.cells = true, { cells { num_tokens = { 1, 16, 256 } } }
  return select(records, options):cell(1, 1, 1, 2).strategy
end

local function beside(strategy, time_us, num_tokens, bits)
  num_tokens = num_tokens or 24
  return record { strategy = strategy, num_tokens = num_tokens, time_us = time_us, low_us = time_us - 0.5,
    high_us = time_us + 0.5, size = 2048 * num_tokens, bits = (bits or "0a"):rep(8) }
end

-- A table that chooses TWOSHOT at 16 tokens.
local function with_twoshot_at_16()
  local old = folder .. "/old.csv"
  local sixteen = record { strategy = "TWOSHOT", num_tokens = 16, size = 32768 }
  assert(file.write(old, select { sixteen }:text("host")))
  return assert(tables.read(old))
end

function tests.test_the_incumbent_stays_if_it_hardly_loses_over_the_bin()
  local incumbent = with_twoshot_at_16()
  luaunit.assertEquals(with_records_beside({}, { incumbent = incumbent }), "TWOSHOT")
  luaunit.assertEquals(with_records_beside({ beside("ONESHOT", 10), beside("TWOSHOT", 11.2) },
    { incumbent = incumbent }), "ONESHOT")
end

function tests.test_strategies_with_other_bits_are_no_reference()
  local rows_beside = { beside("ONESHOT", 10), beside("TWOSHOT", 10), beside("MPI", 2, 16, "0b"),
    beside("MPI", 2, 24, "0b") }
  local options = { incumbent = with_twoshot_at_16() }
  luaunit.assertEquals(with_records_beside(rows_beside, options), "MPI")
  options.same_bits_as = "ONESHOT"
  luaunit.assertEquals(with_records_beside(rows_beside, options), "TWOSHOT")
end

-- Earlier tables have a regret in place of state and losses; the first have no basis. The order of columns is
-- free.
function tests.test_earlier_tables_are_read()
  local path = folder .. "/earlier.csv"
  local header = "arch,world_size,fusion,dtype,op,mode,hidden_size,num_tokens,strategy,time (us)," ..
    "runner_up,margin,confidence,regret"
  local line = "host,2,NONE,bfloat16,allreduce,eager,1024,1,ONESHOT,4.5000,MPI,0.1000,0.9900,0.0200"
  for _, text in ipairs { header .. "\n" .. line .. "\n", header .. ",basis\n" .. line .. ",derived\n",
    header .. ",basis,size,splits\n" .. line .. ",derived,,\n",
    "basis," .. header .. "\nderived," .. line .. "\n" } do
    assert(file.write(path, text))
    local cell = assert(tables.read(path)):cell(1, 1, 1, 1)
    luaunit.assertEquals({ cell.strategy, cell.margin, cell.confidence, cell.state },
      { "ONESHOT", 0.1, 0.99 })
  end
end

function tests.test_a_shape_of_the_workload_that_was_measured_counts_as_it_was()
  local shapes = { { num_tokens = 24, hidden_size = 1024, weight = 1 } }
  luaunit.assertEquals(with_records_beside({ beside("ONESHOT", 30), beside("TWOSHOT", 11) },
    { workload = shapes }), "TWOSHOT")
end

-- The winners at hidden sizes of a table for this lookup, from rows { hidden_size, ONESHOT's time, TWOSHOT's
-- }; of a table by powers of two, the winners that its reader returns.
local function winners_at(times, lookup, options)
  local records, found = {}, {}
  for _, row in ipairs(times) do
    for i, strategy in ipairs { "ONESHOT", "TWOSHOT" } do
      local time = row[i + 1]
      records[#records + 1] = record { strategy = strategy, hidden_size = row[1], time_us = time,
        low_us = time, high_us = time }
    end
  end
  options = options or {}
  options.lookup = lookup
  local made = select(records, options)
  for h, hidden_size in ipairs(made:blocks()[1].hidden_sizes) do
    local is_read = lookup ~= "log2" or hidden_size & (hidden_size - 1) == 0
    found[hidden_size] = is_read and made:cell(1, 1, h, 1).strategy or nil
  end
  return found
end

-- At 2048 ONESHOT is better; at 2880 and 3584, which TensorRT-LLM's lookup maps to it, worse.
function tests.test_a_power_of_two_is_chosen_for_the_sizes_up_to_its_double()
  local times = { { 2048, 10, 20 }, { 2880, 30, 20 }, { 3584, 30, 20 }, { 4096, 20, 21 }, { 8192, 40, 80 } }
  luaunit.assertEquals(winners_at(times, "log2")[2048], "TWOSHOT")
  luaunit.assertEquals(winners_at(times, "floor")[2048], "ONESHOT")
  luaunit.assertEquals(winners_at(times, "floor")[2880], "TWOSHOT")
  luaunit.assertEquals(winners_at({ times[1], times[4], times[5] }, "log2")[2048], "ONESHOT")
end

function tests.test_an_unmeasured_power_of_two_has_its_neighbours_choice()
  local times = { { 2880, 30, 20 }, { 3584, 20, 21 }, { 4096, 20, 40 } }
  luaunit.assertEquals(winners_at(times, "log2"), { [2048] = "TWOSHOT", [4096] = "ONESHOT" })
end

-- ONESHOT is better there, and from 7168 on grows faster, by noise: extrapolated by an octave, TWOSHOT would
-- win.
function tests.test_the_last_bin_is_not_chosen_by_the_noise_of_two_sizes_close_together()
  local times = { { 4096, 40, 50 }, { 7168, 80, 100 }, { 8192, 100, 110 } }
  luaunit.assertEquals(winners_at(times, "log2")[8192], "ONESHOT")
end

-- A power of two between the sizes of the spec, at which an adaptive sweep measured.
function tests.test_a_table_by_powers_of_two_has_those_between_the_specs_sizes()
  local function winners_by(lookup)
    local records, found = {}, {}
    for _, num_tokens in ipairs { 1, 2, 4, 11 } do
      records[#records + 1] = record { num_tokens = num_tokens, size = 2048 * num_tokens }
    end
    local made = select(records, { lookup = lookup, only_cells = true,
      cells = { cells { num_tokens = { 1, 4, 16 } } } })
    for t, num_tokens in ipairs(made:blocks()[1].num_tokens) do
      local cell = made:cell(1, 1, 1, t)
      found[num_tokens] = cell and cell.strategy
    end
    return found
  end
  luaunit.assertEquals(winners_by("nearest"), { [1] = "ONESHOT", [4] = "ONESHOT" })
  luaunit.assertEquals(winners_by("log2"), { [1] = "ONESHOT", [2] = "ONESHOT", [4] = "ONESHOT",
    [8] = "ONESHOT" })
end

-- Beyond 2047 no lookup reads the cell of 1024, whatever the next size is.
function tests.test_a_bin_by_powers_of_two_ends_at_the_next_one()
  local times = { { 1024, 10, 10.2 }, { 16384, 100, 20 } }
  luaunit.assertEquals(winners_at(times, "floor")[1024], "TWOSHOT")
  luaunit.assertEquals(winners_at({ { 1024, 10, 11.5 }, { 16384, 13, 11 } }, "floor")[1024], "TWOSHOT")
  luaunit.assertEquals(winners_at({ { 1024, 10, 11.5 }, { 16384, 13, 11 } }, "log2")[1024], "ONESHOT")
end

function tests.test_a_shape_of_the_workload_that_no_power_of_two_answers_for_does_not_count()
  local times = { { 1024, 10, 11 }, { 8192, 20, 10 } }
  local shapes = { { num_tokens = 1, hidden_size = 1024, weight = 1 },
    { num_tokens = 1, hidden_size = 4096, weight = 100 } }
  luaunit.assertEquals(winners_at(times, "floor", { workload = shapes })[1024], "TWOSHOT")
  luaunit.assertEquals(winners_at(times, "log2", { workload = shapes })[1024], "ONESHOT")
end

function tests.test_derived_times_have_the_bits_of_their_plane()
  local function select_with(bits)
    return select({ record { time_us = 4.5, bits = "0a" }, record { strategy = "MPI", bits = bits,
      time_us = 2, low_us = 2, high_us = 2 }, record { num_tokens = 16, bits = "0a" } },
      { same_bits_as = "ONESHOT", derived = { record { strategy = "MPI", num_tokens = 16, time_us = 2,
        spread = 0.01, noise = 0.01 } } }):cell(1, 1, 1, 2)
  end
  luaunit.assertEquals(select_with("0b").strategy, "ONESHOT")
  local cell = select_with("0a")
  luaunit.assertEquals({ cell.strategy, cell.derived }, { "MPI", true })
end

function tests.test_a_table_reads_back_as_it_was_written()
  local made = select { record(), record { strategy = "MPI", time_us = 4.75, low_us = 4.5, high_us = 5 },
    record { num_tokens = 8, hidden_size = 512 }, record { dtype = "float32" } }
  local path, text = folder .. "/table.csv", made:text("host-x.1")
  assert(file.write(path, text))
  local back, arch = tables.read(path)
  luaunit.assertEquals(arch, "host-x.1")
  luaunit.assertEquals(back:text(arch), text)
  luaunit.assertEquals(back:cell(1, 1, 2, 1).runner_up, "MPI")
end

function tests.test_a_broken_table_is_refused_with_its_line()
  local path = folder .. "/broken.csv"
  local text = select({ record(), record { num_tokens = 2 } }):text("host")
  local function refused(broken, message)
    assert(file.write(path, broken))
    local read, problem = tables.read(path)
    luaunit.assertNil(read)
    luaunit.assertStrContains(problem, path .. ":" .. message)
  end
  refused("", "1: is no table")
  refused(text:gsub("confidence", "confidences"), "1: is no table")
  refused(text:gsub("margin", "state", 1), "1: is no table")
  refused(text:gsub(",margin", "", 1), "1: is no table")
  refused(text:gsub("certain", "sure", 1), "2: a broken number or state")
  refused(text:gsub("ONESHOT", "SLOW", 1), "2: unknown strategy")
  refused(text:gsub("4.5000", "0.0000", 1), "2: a broken number")
  refused(text:gsub("host", "sm90", 1), "3: another arch")
  refused(text:gsub("1024,2", "1024,1"), "3: a cell that occurs before")
  refused(text .. "host,2\n", "4: wrong number of fields")
end

function tests.test_every_strategy_fits_the_choice()
  local records = {}
  for i, strategy in ipairs(lists.strategies) do
    local time = 1000 - i
    records[i] = record { strategy = strategy.name, time_us = time, low_us = time, high_us = time }
  end
  local made = select(records)
  luaunit.assertEquals(made:cell(1, 1, 1, 1).strategy, lists.strategies[#lists.strategies].name)
end

-- A change as table:changes gives it, of the cell of record().
local function change(changes)
  local made = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE",
    hidden_size = 1024, num_tokens = 1, old = { strategy = "ONESHOT" }, new = { strategy = "TWOSHOT" } }
  for key, value in pairs(changes or {}) do made[key] = value end
  return made
end

-- Adds the figures of the records to these changes.
local function enter_times(changes, records)
  local path = folder .. "/times.csv"
  write(path, records)
  tables.times(assert(rows.read { path }), changes)
end

function tests.test_a_change_gets_the_times_of_both_choices()
  local changed, other = change(), change { num_tokens = 2 }
  local twoshot = record { strategy = "TWOSHOT" }
  twoshot.low_us, twoshot.high_us = nil, nil
  enter_times({ changed, other },
    { record(), twoshot, record { strategy = "MPI" }, record { fusion = "RESIDUAL_RMS_NORM" } })
  luaunit.assertEquals(changed.row_count, 3)
  luaunit.assertEquals(changed.old_times, { time = 4.5, low = 4.25, high = 4.75 })
  luaunit.assertEquals(changed.new_times, { time = 4.5 })
  luaunit.assertEquals(other, change { num_tokens = 2 })
end

function tests.test_rows_without_a_mode_count_for_a_cell_of_any()
  local eager, graph = change(), change { mode = "graph", hidden_size = 2048 }
  enter_times({ eager, graph }, { record { mode = "unknown" }, record { hidden_size = 2048, size = 4096 } })
  luaunit.assertEquals(eager.row_count, 1)
  luaunit.assertNil(graph.row_count)
end

function tests.test_rows_of_other_splits_are_of_other_cells()
  local even, uneven = change { op = "alltoallv", splits = "1:1" },
    change { op = "alltoallv", splits = "3:1" }
  enter_times({ even, uneven }, { record { op = "alltoallv", splits = "1:1", time_us = 4.5 },
    record { op = "alltoallv", splits = "3:1", time_us = 4.625 } })
  luaunit.assertEquals({ even.row_count, uneven.row_count }, { 1, 1 })
  luaunit.assertEquals({ even.old_times.time, uneven.old_times.time }, { 4.5, 4.625 })
end

function tests.test_rows_of_other_nodes_are_of_other_cells()
  local together, apart = change { world_size = 4 }, change { world_size = 4, nodes = 2 }
  local one, two = folder .. "/one.csv", folder .. "/two.csv"
  write(one, { record { world_size = 4, time_us = 4.5 } })
  write(two, { record { world_size = 4, nodes = 2, ranks_per_node = 2, time_us = 4.625 } })
  tables.times(assert(rows.read { two, one }), { together, apart })
  luaunit.assertEquals({ together.row_count, apart.row_count }, { 1, 1 })
  luaunit.assertEquals({ together.old_times.time, apart.old_times.time }, { 4.5, 4.625 })
end

function tests.test_nodes_come_back()
  local path, full = folder .. "/nodes.csv", record { world_size = 4, nodes = 2, ranks_per_node = 2 }
  write(path, { full })
  luaunit.assertEquals(rows.records(path), { full })
  local slice = assert(rows.read { path }):slices()[1]
  luaunit.assertEquals({ slice.world_size, slice.nodes }, { 4, 2 })
  for _, uneven in ipairs { { 3, 1 }, { 2, 1 }, { 0, 4 }, { "two", 2 }, { nil, 2 } } do
    local refused = record { world_size = 4, nodes = uneven[1], ranks_per_node = uneven[2] }
    local _, message = rows.text("path", { refused })
    luaunit.assertStrContains(message, "row 1 cannot be written: its ")
  end
end

-- Each number of lists/columns.lua is written, read, part of a slice and pooled, without code of its own.
function tests.test_every_number_of_the_list_of_columns_comes_back()
  local path, full = folder .. "/columns.csv", record()
  for i, column in ipairs(columns) do
    local is_number = not column.names and full[column.key] == nil and column.key ~= "launches"
      and column.key ~= "bits" and column.key ~= "splits" and not column.key:find("nodes?$")
    if is_number then full[column.key] = column.whole and 32.0 or i + 0.25 end
  end
  write(path, { full })
  luaunit.assertEquals(rows.records(path), { full })
  local read = assert(rows.read { path })
  for key, value in pairs(full) do
    if math.type(value) == "float" then
      luaunit.assertEquals(read:slice(read:slices()[1], { key }), { count = 1, [key] = { value } })
    end
  end
  local pooled = pooling.row { full, full }
  for _, column in ipairs(columns) do
    if column.pool == "median" then luaunit.assertEquals(pooled[column.key], full[column.key]) end
  end
end

-- Candidates of plug-ins join the list of strategies when a file names them, but not if that file is refused.
function tests.test_files_that_are_refused_leave_the_strategies_as_they_are()
  local path, before = folder .. "/refused.csv", #lists.strategies
  local text = assert(rows.text(path, { record() })):gsub("ONESHOT", "PLUGIN_REFUSED")
  assert(file.write(path, text:gsub("dedicated", "nowhere")))
  luaunit.assertNil((rows.read { path }))
  luaunit.assertNil((tables.read(path)))
  luaunit.assertNil((tables.parse(path, text)))
  luaunit.assertNil((rows.text(path, { record { strategy = "PLUGIN_REFUSED", placement = "nowhere" } })))
  luaunit.assertEquals(#lists.strategies, before)
  luaunit.assertNil(lists.find("strategies", "PLUGIN_REFUSED"))
  assert(file.write(path, text))
  luaunit.assertEquals(rows.records(path)[1].strategy, "PLUGIN_REFUSED")
  luaunit.assertEquals(#lists.strategies, before + 1)
end

return require "suites" { { "table", tests } }
