-- planning.provisional_table: the uncertain choices of the rows so far, chosen as the spec demands.
local lu = require "luaunit"
local cell_records = require "rows.cell_records"
local pooling = require "sweep.pooling"
local provisional_table = require "planning.provisional_table"

local SPEC = { dtypes = { "bfloat16" }, fusions = { "NONE" }, hidden_sizes = { 1024 },
  num_tokens = { 1, 2, 4, 8, 64 }, strategies = { "ONESHOT", "TWOSHOT" },
  limits = { message_bytes = 1 << 30 }, table = { op = "allreduce", mode = "eager" } }

-- Three launches: ONESHOT is faster by 20 % below four tokens and slower by 20 % above, by more or less from
-- launch to launch: at four tokens, in the bin of which both lie, no choice is certain.
local function rows_of()
  local with = {}
  for _, tokens in ipairs { 1, 2, 3, 4, 5, 8, 64 } do
    for i, strategy in ipairs { "ONESHOT", "TWOSHOT" } do
      local by_launch = {}
      for launch, factor in ipairs { 1, 1.3, 0.9 } do
        local share = tokens < 4 and 1.2 or tokens == 4 and 1 or 1 / 1.2
        local time_us = (10 + tokens) * factor * (i == 2 and share * (1 + 0.02 * (launch - 2)) or 1)
        by_launch[launch] = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
          fusion = "NONE", hidden_size = 1024, num_tokens = tokens, strategy = strategy, size = 2048 * tokens,
          samples = 10, placement = "dedicated", bits = i == 1 and "a" or "b",
          time_us = time_us, min_us = time_us, low_us = time_us, high_us = time_us }
      end
      local row = pooling.row(by_launch)
      with[cell_records.key(row)] = row
    end
  end
  return with
end

-- The numbers of tokens of uncertain choices. `without`: records without a time.
local function uncertain(choice, spec, without)
  local found, out = provisional_table.uncertain(spec or SPEC, 2, rows_of(), without or {}, choice), {}
  for _, tokens in ipairs(SPEC.num_tokens) do
    local key = cell_records.key { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
      fusion = "NONE", hidden_size = 1024, num_tokens = tokens }
    if found[key] then out[#out + 1] = tokens end
  end
  return out
end

local tests = {}

function tests.test_all_shapes_of_a_bin_count() lu.assertEquals(uncertain(), { 4 }) end

-- One strategy has those bits.
function tests.test_numerics_of_the_spec_count()
  lu.assertEquals(uncertain { same_bits_as = "ONESHOT" }, {})
  lu.assertEquals(uncertain { stable = true }, {})
end

function tests.test_a_workload_of_the_spec_counts()
  lu.assertEquals(uncertain { workload = { { num_tokens = 3, hidden_size = 1024, weight = 1 } } }, {})
end

-- It may be the fastest, unless the bench refused it wherever it was tried.
function tests.test_a_strategy_without_any_time_makes_choices_uncertain()
  local spec, refused = {}, {}
  for name, value in pairs(SPEC) do spec[name] = value end
  spec.strategies = { "ONESHOT", "TWOSHOT", "MPI" }
  lu.assertEquals(uncertain(nil, spec), SPEC.num_tokens)
  for _, row in pairs(rows_of()) do
    local record = cell_records.record(row, "MPI", { reason = "unavailable" })
    refused[cell_records.key(record)] = record
  end
  lu.assertEquals(uncertain(nil, spec, refused), { 4 })
end

return require "suites" { { "provisional_table", tests } }
