-- The sheets of collectives over ranks, column by column: matched collectives (matching.lua), latencies,
-- waits, skew, bandwidths and stragglers. Times are µs, MB 2^20 and GB 2^30 bytes.
local collective_events = require "trace.runs.collective_events"
local communication = require "lists.communication"
local group_sheets = require "trace.collectives.group_sheets"
local kinds = require "trace.collectives.kinds"
local nodes = require "trace.collectives.nodes"
local matching = require "trace.collectives.matching"
local incomplete = require "trace.collectives.incomplete"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local rank_sheets = {}

local MB, GB = 2 ^ 20, 2 ^ 30

-- ---- one collective ----------------------------------------------------------------------------

-- The bytes of the whole message; nil: unknown.
local function message_bytes(metadata)
  local kind = kinds.of(metadata.name)
  return kinds.bytes(metadata, kind.full == "out" and metadata.out_elements or metadata.in_elements)
end

-- Computes the fields of a collective from its items; `ranks` in their order.
local function measure(one, ranks)
  local first, last, first_end, last_end = math.huge, -math.huge, math.huge, -math.huge
  one.latency, one.count = math.huge, 0
  for rank_index, rank in ipairs(ranks) do
    local item = one.items[rank_index]
    if item then
      one.count = one.count + 1
      one.latency = math.min(one.latency, item.event.duration)
      if item.start < first then first, one.first_rank = item.start, rank.rank end
      if item.start > last then last, one.last_rank = item.start, rank.rank end
      first_end, last_end = math.min(first_end, item.stop), math.max(last_end, item.stop)
    end
  end
  one.start, one.latest_start, one.start_skew, one.end_skew = first, last, last - first, last_end - first_end
  one.wall, one.apart = last_end - first, last > first_end
  one.size = not kinds.of(one.metadata.name).uneven and message_bytes(one.metadata) or nil
end

local megabytes = kinds.megabytes

-- algbw, busbw (GB/s; nil: the collective has no bus factor) and the bytes of the whole message; nil if type,
-- size or time are unknown.
local function bandwidths(metadata, latency)
  local kind = kinds.of(metadata.name)
  local bytes = message_bytes(metadata)
  if not bytes or latency <= 0 then return nil end
  local algorithm = bytes / GB / (latency / 1e6)
  local bus_factor = communication.bus_factors[kind.operation]
  local size = metadata.group_size
  local factor = bus_factor and size and size > 0 and bus_factor(size)
  return algorithm, factor and algorithm * factor, bytes
end

local function is_timed(one) return kinds.timed_operation(one.metadata) ~= nil end

-- ---- rows by title -----------------------------------------------------------------------------

-- A sheet that is filled by titles: add({ [title] = value }).
local function new_sheet(name, columns)
  local index_of = sequences.indices(columns)
  local sheet = { name = name, columns = columns, rows = {} }
  return sheet, function(values)
    local row = {}
    for title, value in pairs(values) do row[index_of[title] or error("no column " .. title)] = value end
    sheet.rows[#sheet.rows + 1] = row
  end
end

local METADATA = { "Process Group Name", "Process Group Ranks", "Collective name", "Group size", "dtype",
  "In msg nelems", "In msg size (MB)", "Out msg nelems", "Out msg size (MB)" }

-- The last column of sheets with collectives without metadata: the kernel from which their name is inferred.
local INFERRED = "inferred from kernel"

-- The name of a kernel that has no metadata, without its arguments; nil: it has some. C++ writes namespaces
-- without a name in parentheses, too.
local function kernel_without_metadata(metadata)
  if metadata.name then return nil end
  local name = metadata.kernel:gsub("%(anonymous namespace%)", "{anonymous}"):match("^[^(]*")
  return (name:gsub("{anonymous}", "(anonymous namespace)"))
end

-- { INFERRED } if one of the list lacks metadata, else an empty list.
local function inferred_column(list)
  local is_inferred = sequences.any(list, function(one) return not one.metadata.name end)
  return is_inferred and { INFERRED } or {}
end

local function fill_metadata(row, metadata)
  row["Process Group Name"], row["Process Group Ranks"] = metadata.group, metadata.ranks
  row["Collective name"], row["Group size"] = kinds.name_of(metadata), metadata.group_size
  row.dtype, row[INFERRED] = metadata.dtype, kernel_without_metadata(metadata)
  row["In msg nelems"], row["Out msg nelems"] = metadata.in_elements, metadata.out_elements
  row["In msg size (MB)"] = megabytes(metadata, metadata.in_elements)
  row["Out msg size (MB)"] = megabytes(metadata, metadata.out_elements)
  return row
end

local function columns(...)
  return sequences.join({ ... }, function(part) return type(part) == "table" and part or { part } end)
end

local function rank_columns(ranks, ...)
  local out = {}
  for _, rank in ipairs(ranks) do
    for _, what in ipairs { ... } do out[#out + 1] = ("rank_%d_%s"):format(rank.rank, what) end
  end
  return out
end

-- ---- statistics --------------------------------------------------------------------------------

-- Lists of rows with equal keys, in order of first appearance; key_of(row) -> the values of the key.
local function group_by(rows, key_of)
  return ordering.groups(rows, function(row)
    local values = table.pack(key_of(row))
    for i = 1, values.n do values[i] = tostring(values[i]) end
    return table.concat(values, "\0")
  end)
end

-- row[what_statistic] for each statistic of `values`; empty if there are none.
local function fill_statistics(row, what, values, names)
  if #values == 0 then return end
  local summary = statistics.summarise(values)
  summary.sum = statistics.sum(values)
  summary.std = #values > 1 and summary.standard_deviation or nil
  for _, name in ipairs(names) do row[what .. "_" .. name] = summary[name] end
end

local function statistic_columns(what, names)
  return sequences.map(names, function(name) return what .. "_" .. name end)
end

-- ---- the sheets --------------------------------------------------------------------------------

-- The time in collectives, by rank and collective: waiting for other ranks is part of it.
local collective_time = { name = "collective_time", sql = [[
SELECT rank, "Collective name" AS collective, "Process Group Name" AS process_group, count(*) AS calls,
  sum(dur) AS time_us, max(dur) AS longest_us
FROM nccl_long GROUP BY rank, collective, process_group ORDER BY rank, time_us DESC]] }

local function long_sheet(all, ranks, places)
  local sheet, add = new_sheet("nccl_long", columns("collective_id", "index_in_group", "rank", METADATA,
    "In split size", "Out split size", "stream", "ts", "dur", inferred_column(all),
    places and { "node" } or {}))
  sheet.views = { collective_time }
  for _, one in ipairs(all) do
    for rank_index, rank in ipairs(ranks) do
      local item = one.items[rank_index]
      if item then
        local stream = item.event.stream >= 0 and item.event.stream or nil
        add(fill_metadata({ collective_id = one.id, index_in_group = one.index, rank = rank.rank,
          ["In split size"] = item.metadata.in_split,
          ["Out split size"] = item.metadata.out_split, stream = stream, ts = item.start,
          dur = item.event.duration, node = places and places:node(rank.rank) }, item.metadata))
      end
    end
  end
  return sheet
end

local LONG_STATISTICS = { "sum", "mean", "median", "std", "min", "max" }

-- The durations of all ranks: { { rank, metadata, durations }... }, one entry for each rank and metadata.
local function durations_of(all, ranks)
  local rows, out = {}, {}
  for _, one in ipairs(all) do
    for rank_index, rank in ipairs(ranks) do
      local item = one.items[rank_index]
      if item then
        rows[#rows + 1] = { rank = rank.rank, metadata = item.metadata, duration = item.event.duration }
      end
    end
  end
  for i, group in ipairs(group_by(rows, function(row)
    local metadata = row.metadata
    return row.rank, metadata.group, metadata.ranks, metadata.name, metadata.group_size, metadata.dtype,
      metadata.in_elements, metadata.out_elements, not metadata.name and metadata.kernel
  end)) do
    out[i] = { rank = group[1].rank, metadata = group[1].metadata,
      durations = sequences.field(group, "duration") }
  end
  return out
end

local function summary_long_sheet(groups)
  local sheet, add = new_sheet("nccl_summary_long", columns("rank", METADATA,
    statistic_columns("dur", LONG_STATISTICS), "count", inferred_column(groups)))
  for _, group in ipairs(groups) do
    local row = fill_metadata({ rank = group.rank, count = #group.durations }, group.metadata)
    fill_statistics(row, "dur", group.durations, LONG_STATISTICS)
    add(row)
  end
  ordering.falling(sheet.rows, function(row) return row[#METADATA + 2] end)
  return sheet
end

local function fill_ranks(row, one, ranks, sized)
  for rank_index, rank in ipairs(ranks) do
    local item, prefix = one.items[rank_index], ("rank_%d_"):format(rank.rank)
    if item then
      row[prefix .. "ts"], row[prefix .. "dur"] = item.start, item.event.duration
      if sized then
        row[prefix .. "size (MB)"] = megabytes(item.metadata, item.metadata.in_elements)
      else
        row[prefix .. "wait_time"] = one.latest_start - item.start
      end
    end
  end
end

local function average_wait(one)
  local sum = 0
  for _, item in pairs(one.items) do sum = sum + (one.latest_start - item.start) end
  return sum / one.count
end

local function implicit_sync_sheet(timed, ranks)
  local sheet, add = new_sheet("nccl_implicit_sync", columns("collective_id", METADATA,
    rank_columns(ranks, "ts", "dur", "wait_time"), "earliest arrival rank", "avg_wait_time",
    "skew in start time", "skew in end time", "comm_latency", "Full msg size (MB)", "algo bw (GB/s)",
    "bus bw (GB/s)", "ranks", inferred_column(timed)))
  for _, one in ipairs(timed) do
    local row = fill_metadata({ collective_id = one.id, ["earliest arrival rank"] = one.first_rank,
      avg_wait_time = average_wait(one), ["skew in start time"] = one.start_skew,
      ["skew in end time"] = one.end_skew, comm_latency = one.latency,
      ["Full msg size (MB)"] = one.bytes and one.bytes / MB,
      ["algo bw (GB/s)"] = one.algorithm_bandwidth, ["bus bw (GB/s)"] = one.bus_bandwidth,
      ranks = one.count }, one.metadata)
    fill_ranks(row, one, ranks)
    add(row)
  end
  return sheet
end

local SUMMARY_STATISTICS = { "mean", "median", "min", "max" }
local SUMMARISED = { "comm_latency", "skew in start time", "skew in end time", "algo bw (GB/s)",
  "bus bw (GB/s)" }

local function summary_values(group)
  local values = {}
  for _, what in ipairs(SUMMARISED) do values[what] = {} end
  for _, one in ipairs(group) do
    table.insert(values["comm_latency"], one.latency)
    table.insert(values["skew in start time"], one.start_skew)
    table.insert(values["skew in end time"], one.end_skew)
    table.insert(values["algo bw (GB/s)"], one.algorithm_bandwidth)
    table.insert(values["bus bw (GB/s)"], one.bus_bandwidth)
  end
  return values
end

local function summary_implicit_sync_sheet(timed)
  local titles = columns("Collective name", "dtype", "In msg nelems", "In msg size (MB)")
  for _, what in ipairs(SUMMARISED) do
    titles = columns(titles, statistic_columns(what, SUMMARY_STATISTICS))
  end
  titles = columns(titles, "count", "Total comm latency (ms)")
  local sheet, add = new_sheet("nccl_summary_implicit_sync", columns(titles, inferred_column(timed)))
  local groups = group_by(timed, function(one)
    local metadata = one.metadata
    return metadata.name, metadata.dtype, metadata.in_elements, not metadata.name and metadata.kernel
  end)
  for _, group in ipairs(groups) do
    local metadata, values = group[1].metadata, summary_values(group)
    local row = { ["Collective name"] = kinds.name_of(metadata), dtype = metadata.dtype,
      [INFERRED] = kernel_without_metadata(metadata),
      ["In msg nelems"] = metadata.in_elements,
      ["In msg size (MB)"] = megabytes(metadata, metadata.in_elements),
      count = #group, ["Total comm latency (ms)"] = statistics.sum(values.comm_latency) / 1000 }
    for _, what in ipairs(SUMMARISED) do fill_statistics(row, what, values[what], SUMMARY_STATISTICS) end
    add(row)
  end
  ordering.falling(sheet.rows, function(row) return row[#titles] end)
  return sheet
end

local function all2allv_sheet(all, ranks)
  local sheet, add = new_sheet("nccl_all2allv", columns("collective_id", "Process Group Name",
    "Process Group Ranks", "Collective name", "Group size", "dtype", rank_columns(ranks, "ts", "dur",
    "size (MB)"), "wall_time", "total size (MB)", "size_imbalance", "throughput (GB/s)",
    "skew in start time", "skew in end time", "ranks"))
  for _, one in ipairs(all) do
    if one.metadata.name and kinds.of(one.metadata.name).uneven then
      local metadata, sizes = one.metadata, {}
      for _, item in pairs(one.items) do
        sizes[#sizes + 1] = megabytes(item.metadata, item.metadata.in_elements)
      end
      local total = #sizes == one.count and statistics.sum(sizes) or nil
      local row = { collective_id = one.id, ["Process Group Name"] = metadata.group,
        ["Process Group Ranks"] = metadata.ranks, ["Collective name"] = metadata.name,
        ["Group size"] = metadata.group_size, dtype = metadata.dtype, wall_time = one.wall,
        ["total size (MB)"] = total, ["skew in start time"] = one.start_skew,
        ["skew in end time"] = one.end_skew, ranks = one.count }
      if total and total > 0 then row.size_imbalance = math.max(table.unpack(sizes)) / (total / #sizes) end
      if total and one.wall > 0 then row["throughput (GB/s)"] = total / 1024 / (one.wall / 1e6) end
      fill_ranks(row, one, ranks, true)
      add(row)
    end
  end
  return sheet
end

local function straggler_sheet(all, timed, ranks, places)
  local sheet, add = new_sheet("straggler_summary", columns("rank", "total_wait_time_us", "avg_wait_time_us",
    "times_arrived_last", "pct_arrived_last", "times_arrived_first", "pct_arrived_first", "collectives",
    "total_nccl_dur_us", places and { "node" } or {}))
  for rank_index, rank in ipairs(ranks) do
    local wait, last, first, count, total = 0, 0, 0, 0, 0
    for _, one in ipairs(all) do
      total = total + (one.items[rank_index] and one.items[rank_index].event.duration or 0)
    end
    for _, one in ipairs(timed) do
      local item = one.items[rank_index]
      if item and one.count > 1 then
        count, wait = count + 1, wait + (one.latest_start - item.start)
        if one.last_rank == rank.rank then last = last + 1 end
        if one.first_rank == rank.rank then first = first + 1 end
      end
    end
    if count > 0 then
      add { rank = rank.rank, total_wait_time_us = wait, avg_wait_time_us = wait / count,
        times_arrived_last = last, pct_arrived_last = 100 * last / count, times_arrived_first = first,
        pct_arrived_first = 100 * first / count, collectives = count, total_nccl_dur_us = total,
        node = places and places:node(rank.rank) }
    end
  end
  table.sort(sheet.rows, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[1] < b[1]
  end)
  return sheet
end

-- ---- all ---------------------------------------------------------------------------------------

local function notes_sheet(notes)
  local sheet = { name = "nccl_notes", columns = { "note" }, rows = {} }
  for i, note in ipairs(notes) do sheet.rows[i] = { note } end
  return sheet
end

local function with_rows(list) return sequences.filter(list, function(sheet) return #sheet.rows > 0 end) end

-- ranks = { { rank, base_nanoseconds, columns, metadata }... }, as rank_sheets.of makes them -> the sheets
-- with rows (none: no collective), and notes: `notes` and the incomplete parts, as texts. gpus_per_node: the
-- ranks on each node; nil: as in the traces.
function rank_sheets.make(ranks, notes, gpus_per_node)
  notes = table.move(notes or {}, 1, #(notes or {}), 1, {})
  for _, rank in ipairs(ranks) do rank.events = rank.events or collective_events.list(rank.columns) end
  incomplete.align_clocks(ranks, notes)
  local all, offsets = matching.match(ranks)
  local timed = {}
  for _, one in ipairs(all) do measure(one, ranks) end
  table.sort(all, ordering.by("start", "id"))
  for _, one in ipairs(all) do
    if is_timed(one) then
      one.algorithm_bandwidth, one.bus_bandwidth, one.bytes = bandwidths(one.metadata, one.latency)
      timed[#timed + 1] = one
    end
  end
  if #all == 0 then return {}, notes end
  incomplete.note(all, timed, ranks, offsets, notes)
  local places = nodes.of(ranks, gpus_per_node, notes)
  return with_rows(sequences.join { { summary_implicit_sync_sheet(timed) },
    group_sheets.make(all, ranks, places), { summary_long_sheet(durations_of(all, ranks)),
      all2allv_sheet(all, ranks), long_sheet(all, ranks, places), implicit_sync_sheet(timed, ranks),
      straggler_sheet(all, timed, ranks, places), notes_sheet(notes) } }), notes
end

-- The sheet nccl_summary_long of one open trace, without a comparison of ranks; nil: it has no collective.
function rank_sheets.summary_long(t, rank)
  local groups = t:collective_durations()
  for _, group in ipairs(groups) do group.rank = rank end
  return #groups > 0 and summary_long_sheet(groups) or nil
end

-- The input of rank_sheets.make from one trace (trace/runs/trace_source.lua).
function rank_sheets.of(source, rank)
  local info, found = source:info(), source:get(collective_events)
  return { rank = rank, base_nanoseconds = info.base_nanoseconds, columns = found.columns,
    metadata = found.metadata, devices = info.devices, world_size = info.world_size }
end

return rank_sheets
