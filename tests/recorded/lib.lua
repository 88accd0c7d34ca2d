-- Recorded rows: one TP size, with ten or more launches of the bench a point, from which sweeps of five
-- launches can be made up. See README.md here for where they come from. Shared by the tests of this folder
-- and by tests/perf/planner.lua.
local cell_records = require "rows.cell_records"
local choices = require "core.choose"
local explore = require "planning.explore"
local fail = require "base.fail"
local file = require "core.file"
local provenance = require "rows.provenance"
local provisional_table = require "planning.provisional_table"
local rows = require "core.rows"
local pooling = require "sweep.pooling"
local sorted_keys = require("base.ordering").sorted_keys

local lib = {}

lib.LAUNCHES = 5 -- of a sweep

-- Hidden sizes that no sweep here has in its grid.
lib.off_grid = { [1472] = true, [3584] = true, [5120] = true, [5824] = true, [7168] = true }

-- { world_size, hidden_sizes, num_tokens, fusions, strategies, of[cell key] = { strategy -> record } }
function lib.read(path)
  local seen = { hidden_size = {}, num_tokens = {}, fusion = {}, strategy = {} }
  local recording = { of = {}, provenance = fail.unless(provenance.read(provenance.path_of(path))) }
  for _, record in ipairs(fail.unless(rows.records(path))) do
    for name, values in pairs(seen) do values[record[name]] = true end
    local key = cell_records.key(cell_records.record(record))
    recording.of[key] = recording.of[key] or {}
    recording.of[key][record.strategy] = record
    recording.world_size, recording.any = record.world_size, record
  end
  recording.hidden_sizes, recording.num_tokens = sorted_keys(seen.hidden_size), sorted_keys(seen.num_tokens)
  recording.fusions, recording.strategies = sorted_keys(seen.fusion), sorted_keys(seen.strategy)
  return recording
end

-- A spec of one fusion, or of all.
function lib.spec(recording, fusion)
  local hidden_sizes = {}
  for _, hidden in ipairs(recording.hidden_sizes) do
    if not lib.off_grid[hidden] then hidden_sizes[#hidden_sizes + 1] = hidden end
  end
  return { arch = "host", tp = { recording.world_size }, dtypes = { recording.any.dtype },
    fusions = fusion and { fusion } or recording.fusions, hidden_sizes = hidden_sizes,
    num_tokens = recording.num_tokens,
    strategies = recording.strategies, limits = { message_bytes = 1 << 40, launches = lib.LAUNCHES },
    table = { dtype = recording.any.dtype, op = recording.any.op, mode = recording.any.mode } }
end

-- A record of one launch, as a bench would print it; nil if there is none. `slower`: strategy -> factor on
-- its times.
function lib.record_of(recorded, launch, slower)
  local time_us = recorded.launches[launch]
  if not time_us then return nil end
  time_us = time_us * (slower and slower[recorded.strategy] or 1)
  local record = {}
  for name, value in pairs(recorded) do record[name] = value end
  record.launches, record.time_us, record.min_us = nil, time_us, time_us
  record.low_us, record.high_us = time_us, time_us
  return record
end

-- The output of a command, and whether it ended with 0.
function lib.shell(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  return text, pipe:close() == true
end

local function spec_text(spec)
  local function list(values)
    local words = {}
    for i, value in ipairs(values) do words[i] = type(value) == "string" and ("%q"):format(value) or value end
    return "{ " .. table.concat(words, ", ") .. " }"
  end
  return ("return { arch = 'host', tp = %s, dtypes = %s, fusions = %s, hidden_sizes = %s, num_tokens = %s, "
    .. "strategies = %s, table = { dtype = %q, op = %q, mode = %q } }\n"):format(list(spec.tp),
    list(spec.dtypes), list(spec.fusions), list(spec.hidden_sizes), list(spec.num_tokens),
    list(spec.strategies), spec.table.dtype, spec.table.op, spec.table.mode)
end

-- Writes rows ({ cell and strategy -> { [launch] = record } }) as a sweep does, with the spec. Returns the
-- path of the file.
function lib.write_rows(folder, recording, spec, found)
  local with = {}
  for _, by_launch in pairs(found) do with[#with + 1] = pooling.row(by_launch) end
  table.sort(with, cell_records.before)
  fail.unless(file.make_folder(folder))
  local size = spec.tp[1]
  local csv = ("%s/benchmark.tp%d.host.csv"):format(folder, size)
  fail.unless(file.write(folder .. "/spec.lua", spec_text(spec)))
  fail.unless(provenance.write(csv, fail.unless(rows.text(csv, with)), { world_size = size, arch = "host",
    fingerprint = "recorded", machine = recording.provenance.machine,
    bench = recording.provenance.bench, spec = { hash = "recorded" }, derived = 1,
    no_time = {} }))
  return csv
end

-- The rows of a sweep in the launches of `order` from `first` on, at all points or, `on_grid`, at those of
-- the spec. `slower`: strategy -> factor on its times.
function lib.sweep(recording, order, first, options)
  local found = {}
  for _, of in pairs(recording.of) do
    for strategy, recorded in pairs(of) do
      local by_launch = {}
      for launch = 1, lib.LAUNCHES do
        by_launch[launch] = lib.record_of(recorded, order[first + launch - 1], options.slower)
      end
      local is_asked = not (options.on_grid and lib.off_grid[recorded.hidden_size])
        and (not options.fusion or recorded.fusion == options.fusion)
      if is_asked and next(by_launch) then found[cell_records.key(recorded) .. strategy] = by_launch end
    end
  end
  return found
end

-- The rows of a sweep of the spec's grid in all launches of `order`.
function lib.rows_on_grid(recording, spec, order)
  local is_hidden, is_tokens, records = {}, {}, {}
  for _, value in ipairs(spec.hidden_sizes) do is_hidden[value] = true end
  for _, value in ipairs(spec.num_tokens) do is_tokens[value] = true end
  for _, of in pairs(recording.of) do
    for _, recorded in pairs(of) do
      local by_launch, is_on_grid = {}, is_hidden[recorded.hidden_size] and is_tokens[recorded.num_tokens]
      for i, launch in ipairs(is_on_grid and order or {}) do
        by_launch[i] = lib.record_of(recorded, launch)
      end
      if next(by_launch) then records[#records + 1] = pooling.row(by_launch) end
    end
  end
  table.sort(records, cell_records.before)
  return fail.unless(rows.of("recorded", records)), records
end

-- The table of these rows on the grid of a spec, with these options of core.choose.
function lib.select(recording, spec, read, options)
  local any = recording.any
  options.only_cells, options.cells = true, { { world_size = recording.world_size, dtype = any.dtype,
    op = any.op, mode = any.mode, fusions = spec.fusions, hidden_sizes = spec.hidden_sizes,
    num_tokens = spec.num_tokens } }
  return fail.unless(choices.select(read, options))
end

-- Visits cells as the planner requests, in the launches of `order`. Returns by_launch of each cell and
-- strategy, the number of visits times strategies, and records of those without a time.
function lib.play(recording, spec, order, exhaustive)
  local cells = cell_records.cells(spec, recording.world_size)
  local found, no_time, cost, launch = {}, {}, 0, 0
  local planner = explore.new { spec = spec, cells = cells, launches = lib.LAUNCHES, exhaustive = exhaustive,
    now = function() return 0 end, uncertain_cells = function()
      local with = {}
      for key, by_launch in pairs(found) do with[key] = pooling.row(by_launch) end
      return provisional_table.uncertain(spec, recording.world_size, with, no_time)
    end }
  repeat
    launch = launch + 1
    for task in function() return planner:next(launch) end do
      local of = recording.of[cell_records.key(cell_records.record(task.cell))]
      local with, without = {}, {}
      for _, strategy in ipairs(of and task.strategies or {}) do
        local record = of[strategy] and lib.record_of(of[strategy], order[launch])
        if record then
          with[#with + 1], cost = record, cost + 1
          local key = cell_records.key(record)
          found[key] = found[key] or {}
          found[key][launch] = record
        else
          without[#without + 1] = cell_records.record(task.cell, strategy, { reason = "not recorded" })
          if of[strategy] == nil then table.insert(no_time, without[#without]) end
        end
      end
      if not of then planner:give_up(task.cell) end
      planner:take(task.cell, launch, with, without)
    end
  until launch == lib.LAUNCHES or not planner:wants(launch + 1)
  return found, cost, no_time
end

-- The numbers of a list such as 1,2,4.
function lib.numbers(list)
  local out = {}
  for word in list:gmatch "[^,]+" do out[#out + 1] = tonumber(word) end
  return out
end

-- A random order of 1 to `count`, the same for the same seed.
function lib.shuffled(count, seed)
  local order = {}
  for i = 1, count do order[i] = i end
  math.randomseed(seed)
  for i = count, 2, -1 do
    local j = math.random(i)
    order[i], order[j] = order[j], order[i]
  end
  return order
end

return lib
