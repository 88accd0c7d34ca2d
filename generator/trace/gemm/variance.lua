-- The GEMMs with the most varying kernel time: found in one trace (variance.of), and as tables over all
-- traces (variance.sheet). Time stamps and overlap are those of the instances themselves, so that they belong
-- to the right GEMM even if several GEMMs share a kernel.
local collective_events = require "trace.runs.collective_events"
local input_csv = require "trace.gemm.input_csv"
local gemm_instances = require "trace.gemm.gemm_instances"
local ordering = require "base.ordering"
local overlap = require "trace.gemm.overlap"
local sequences = require "base.sequences"

local variance = {}

local LEAST, MOST = "Kernel Time (µs)_min", "Kernel Time (µs)_max"

-- The rows (numbers) with the most varying time, at most `count` of them.
local function most_varied(gemm, count)
  local index_of = sequences.indices(gemm.columns)
  local least, most = index_of[LEAST], index_of[MOST]
  local order = {}
  for number in ipairs(gemm.rows) do order[number] = number end
  ordering.falling(order, function(number) return gemm.rows[number][most] - gemm.rows[number][least] end)
  return table.move(order, 1, math.min(count, #order), 1, {})
end

local function all_of(instances, collectives)
  return sequences.map(instances, function(one)
    return { kernel = one.longest_kernel, start_us = one.start_us, time_us = one.time_us,
      overlap = overlap.stretch(collectives, one.start_us, one.stop_us) }
  end)
end

-- The selected GEMMs: { { number, index in the input CSV | nil }... }.
local function wanted(gemm, options)
  if not options.input then
    return sequences.map(most_varied(gemm, options.top_k), function(number) return { number } end)
  end
  return sequences.map(options.indices or {}, function(index)
    return { input_csv.find(options.input, index, gemm), index }
  end)
end

-- nil if no instance has GPU events.
local function describe(gemm, number, index, collectives, with_all)
  local cells, instances = gemm.rows[number], gemm.instances(number)
  if #instances == 0 then return nil end
  local shortest = sequences.largest(instances, function(one) return -one.time_us end)
  local longest = sequences.largest(instances, function(one) return one.time_us end)
  local index_of = sequences.indices(gemm.columns)
  return { cells = cells, index = index, kernel = longest.longest_kernel,
    least_us = cells[index_of[LEAST]], most_us = cells[index_of[MOST]],
    shortest_at_us = shortest.start_us, longest_at_us = longest.start_us,
    shortest_us = shortest.time_us, longest_us = longest.time_us,
    overlap = overlap.stretch(collectives, longest.start_us, longest.stop_us),
    all = with_all and all_of(instances, collectives) or nil }
end

-- For one trace (trace/runs/trace_source.lua): { columns (of the sheet GEMM), picked = { { cells, kernel,
-- least_us, most_us, shortest_at_us, longest_at_us, shortest_us, longest_us, overlap (of the longest), all
-- (every instance, with that option), index (in the input CSV) }... } }. options: all, and top_k or the rows
-- `indices` of `input` (input_csv.read); rows without a GEMM are left out.
function variance.of(source, options)
  local gemm, found = gemm_instances.gemm(source), source:get(collective_events)
  local collectives = overlap.index(collective_events.list(found.columns), found.metadata)
  local picked = sequences.map(wanted(gemm, options), function(one)
    return one[1] and describe(gemm, one[1], one[2], collectives, options.all)
  end)
  return { columns = gemm.columns, picked = picked }
end

-- ---- over traces -------------------------------------------------------------------------------

local BASE = { "threads", "channel", "rank", "kernel_name", "kernel_time_min_us", "kernel_time_max_us",
  "time_diff_us" }
local TIMES = { "min_duration_timestamp_ms", "max_duration_timestamp_ms", "time_between_min_max_ms",
  "min_duration_found_us", "max_duration_found_us" }
local OVERLAP = { "overlapping_collective_count", "overlapping_collective_names", "max_overlap_percentage",
  "max_overlap_collective", "total_overlap_duration_ms" }
local INSTANCE = { "threads", "channel", "rank", "kernel_name", "instance", "timestamp_ms", "duration_us" }

-- The GEMM columns that any of these traces has, sorted.
local function gemm_columns(found)
  return ordering.sort(sequences.distinct(sequences.join(found, function(one) return one.value.columns end)))
end

local function append(row, at, ...)
  local values = table.pack(...)
  for i = 1, values.n do row[at + i] = values[i] end
  return at + values.n
end

local function append_gemm(row, at, titles, columns, cells)
  local value = {}
  for i, title in ipairs(columns) do value[title] = cells[i] end
  for i, title in ipairs(titles) do row[at + i] = value[title] end
  return at + #titles
end

local function append_times(row, at, one)
  local shortest, longest = one.shortest_at_us / 1000, one.longest_at_us / 1000
  return append(row, at, shortest, longest, math.abs(one.longest_at_us - one.shortest_at_us) / 1000,
    one.shortest_us, one.longest_us)
end

local function append_overlap(row, at, found)
  return append(row, at, found.count, found.names, found.percentage, found.collective, found.total_us / 1000)
end

local function titles_of(first, gemm, ...)
  return sequences.join { first, sequences.map(gemm, function(title) return "col_" .. title end), ... }
end

local function rows_of(found, titles, fill)
  local rows = {}
  for _, trace in ipairs(found) do
    for _, one in ipairs(trace.value.picked) do
      local row, entry = {}, trace.entry
      local at = append(row, 0, entry.threads, entry.channels, entry.rank, one.kernel, one.least_us,
        one.most_us, one.most_us - one.least_us)
      fill(row, append_gemm(row, at, titles, trace.value.columns, one.cells), one)
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- The table over every instance of the selected GEMMs.
local function instances_sheet(name, found, titles, with_overlap)
  local rows = {}
  for _, trace in ipairs(found) do
    for _, one in ipairs(trace.value.picked) do
      for i, instance in ipairs(one.all) do
        local row, entry = {}, trace.entry
        local at = append(row, 0, entry.threads, entry.channels, entry.rank, instance.kernel, i - 1,
          instance.start_us / 1000, instance.time_us)
        at = append_gemm(row, at, titles, trace.value.columns, one.cells)
        if with_overlap then append_overlap(row, at, instance.overlap) end
        rows[#rows + 1] = row
      end
    end
  end
  return { name = name, rows = rows, columns = titles_of(INSTANCE, titles, with_overlap and OVERLAP or nil) }
end

-- found = { { entry = { threads, channels, rank }, value = as of variance.of }... } -> the sheet of a kind:
-- "variance", "timestamps", "overlap"; with `all`, that of every instance ("timestamps", "overlap"). Its name
-- is that of its file, without extension.
function variance.sheet(kind, found, top_k, all)
  local titles, name = gemm_columns(found), ("top%d_gemm_kernels_time_variance"):format(top_k)
  local suffix = kind == "overlap" and "_with_collective_overlap" or "_with_timestamps"
  if all then
    return instances_sheet(("top%d_gemm_kernels_instances%s"):format(top_k, suffix), found, titles,
      kind == "overlap")
  elseif kind == "variance" then
    return { name = name, columns = titles_of(BASE, titles), rows = rows_of(found, titles, function() end) }
  elseif kind == "timestamps" then
    return { name = name .. suffix, columns = titles_of(BASE, titles, TIMES),
      rows = rows_of(found, titles, append_times) }
  end
  return { name = name .. suffix, columns = titles_of(BASE, titles, TIMES, OVERLAP),
    rows = rows_of(found, titles, function(row, at, one)
      append_overlap(row, append_times(row, at, one), one.overlap)
    end) }
end

-- The columns of an input CSV that this module does not make.
local function kept_columns(input)
  local made = sequences.set(sequences.join { TIMES, OVERLAP })
  return sequences.filter(input.columns, function(column) return not made[column] end)
end

-- The rows of an input CSV (input_csv.read), followed by the columns of "timestamps" or "overlap", and the
-- number of rows without a GEMM: their new columns are empty.
function variance.extended(kind, input, found)
  local by_index, kept, rows, missing = {}, kept_columns(input), {}, 0
  for _, trace in ipairs(found) do
    for _, one in ipairs(trace.value.picked) do by_index[one.index] = one end
  end
  for index, cells in ipairs(input.rows) do
    local row, one = {}, by_index[index]
    for i, column in ipairs(kept) do row[i] = cells[column] end
    if one then
      local at = append_times(row, #kept, one)
      if kind == "overlap" then append_overlap(row, at, one.overlap) end
    else
      missing = missing + 1
    end
    rows[index] = row
  end
  local name = input.path:match("([^/]*)$"):gsub("%.csv$", ""):gsub("_with_timestamps$", "")
  local is_overlap = kind == "overlap"
  return { name = name .. (is_overlap and "_with_collective_overlap" or "_with_timestamps"), rows = rows,
    columns = titles_of(kept, {}, TIMES, is_overlap and OVERLAP or nil) }, missing
end

return variance
