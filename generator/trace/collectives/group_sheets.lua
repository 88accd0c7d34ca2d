-- The sheets of collectives by process group, by span over nodes, and of all_to_allv by rank. Input are
-- matched collectives, measured by rank_sheets.lua: { metadata, items, latency, start_skew,
-- algorithm_bandwidth, bus_bandwidth, size (bytes of the message, or nil) }. Times are µs, MB are 2^20
-- and GB 2^30 bytes.
local kinds = require "trace.collectives.kinds"
local nodes = require "trace.collectives.nodes"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local group_sheets = {}

local MB, GB = 2 ^ 20, 2 ^ 30

local function longest(values)
  local most = 0.0
  for _, value in ipairs(values) do most = math.max(most, value) end
  return most
end

local function mean(values) return #values > 0 and statistics.sum(values) / #values or nil end

-- The values of a field that collectives have.
local function values_of(list, field)
  return sequences.map(list, function(one) return one[field] end)
end

-- The sum of the sizes in MB; nil: one is unknown.
local function total_size(list)
  local sizes = values_of(list, "size")
  return #sizes == #list and statistics.sum(sizes) / MB or nil
end

-- ---- groups -----------------------------------------------------------------------------------

local GROUP = { "Process Group Name", "Process Group Ranks", "Group size" }
local OF_GROUP = { "Collective name", "dtype", "count", "Total comm latency (ms)", "comm_latency_mean",
  "comm_latency_max", "skew in start time_mean", "Total msg size (MB)", "algo bw (GB/s)_mean",
  "bus bw (GB/s)_mean" }

local function row_of_group(list, places)
  local metadata, latencies = list[1].metadata, values_of(list, "latency")
  local row, at = { metadata.group, metadata.ranks, metadata.group_size }, #GROUP
  if places then
    row[at + 1], row[at + 2] = places:span(metadata)
    at = at + 2
  end
  for i, value in pairs { kinds.name_of(metadata), metadata.dtype, #list, statistics.sum(latencies) / 1000,
    mean(latencies), longest(latencies),
    mean(values_of(list, "start_skew")), total_size(list), mean(values_of(list, "algorithm_bandwidth")),
    mean(values_of(list, "bus_bandwidth")) } do
    row[at + i] = value
  end
  return row
end

-- The collectives of each process group, by name and type.
local function summary_of_groups(all, places)
  local sheet = { name = "nccl_summary_groups", rows = {},
    columns = sequences.join { GROUP, places and { "span", "nodes" } or {}, OF_GROUP } }
  for i, list in ipairs(ordering.groups(all, function(one)
    local metadata = one.metadata
    return table.concat({ metadata.group or "", metadata.ranks or "", kinds.name_of(metadata) or "",
      metadata.dtype or "" }, "\0")
  end)) do
    sheet.rows[i] = row_of_group(list, places)
  end
  local at = sequences.indices(sheet.columns)["Total comm latency (ms)"]
  ordering.falling(sheet.rows, function(row) return row[at] end)
  return sheet
end

-- ---- nodes ------------------------------------------------------------------------------------

-- The bytes per time of those collectives that have a bandwidth, and the mean bus bandwidth by time, in GB/s.
local function bandwidths(list)
  local bytes, time, bus, bus_time = 0, 0, 0, 0
  for _, one in ipairs(list) do
    if one.algorithm_bandwidth then bytes, time = bytes + one.size, time + one.latency end
    if one.bus_bandwidth then
      bus, bus_time = bus + one.bus_bandwidth * one.latency, bus_time + one.latency
    end
  end
  return time > 0 and bytes / GB / (time / 1e6) or nil, bus_time > 0 and bus / bus_time or nil
end

-- Collectives within and between nodes.
local function summary_of_nodes(all, places)
  local sheet = { name = "nccl_summary_nodes", rows = {}, columns = { "span", "count",
    "Total comm latency (ms)", "Total msg size (MB)", "algo bw (GB/s)", "bus bw (GB/s)" } }
  local groups = ordering.groups(all, function(one) return places:span(one.metadata) or "unknown" end)
  for i, list in ipairs(ordering.sort(groups, ordering.by("key"))) do
    local algorithm, bus = bandwidths(list)
    sheet.rows[i] = { list.key, #list, statistics.sum(values_of(list, "latency")) / 1000, total_size(list),
      algorithm, bus }
  end
  return sheet
end

-- ---- all_to_allv ------------------------------------------------------------------------------

-- The numbers of a list of splits for `count` ranks; equal ones for an empty list; nil: it is cut or missing.
local function splits_of(text, count)
  local out = {}
  for number in (text or "..."):gmatch("%d+") do out[#out + 1] = tonumber(number) end
  if text and text:match("^%s*%[?%s*%]?%s*$") then
    for i = 1, count do out[i] = 1 end
  end
  return #out == count and out or nil
end

-- Adds the MB that a rank sends to each other one to sums[receiver]. Returns whether they are known.
local function add_traffic(sums, metadata, sent, world_size)
  local members = nodes.members(metadata, world_size)
  local splits = members and splits_of(metadata.in_split, #members)
  local parts = splits and statistics.sum(splits) or 0
  if not sent or not splits or (parts == 0 and sent > 0) then return false end
  for i, receiver in ipairs(members) do
    sums[receiver] = (sums[receiver] or 0.0) + (parts > 0 and sent * splits[i] / parts or 0.0)
  end
  return true
end

-- Sums over the uneven collectives of a rank; nil: it has none.
local function sums_of_rank(uneven, rank_index, world_size)
  local sums = { calls = 0, sent = 0.0, received = 0.0, longest = 0.0, time = 0.0, to = {}, is_known = true }
  for _, one in ipairs(uneven) do
    local item = one.items[rank_index]
    if item then
      local metadata = item.metadata
      local sent = kinds.megabytes(metadata, metadata.in_elements)
      local received = kinds.megabytes(metadata, metadata.out_elements)
      sums.calls, sums.time = sums.calls + 1, sums.time + item.event.duration
      sums.longest = math.max(sums.longest, item.event.duration)
      sums.sent = sums.sent and sent and sums.sent + sent
      sums.received = sums.received and received and sums.received + received
      sums.is_known = add_traffic(sums.to, metadata, sent, world_size) and sums.is_known
    end
  end
  return sums.calls > 0 and sums or nil
end

-- The MB that a rank sends to other nodes.
local function to_other_nodes(sums, rank, places)
  local total = 0.0
  for receiver, sent in pairs(sums.to) do
    if places:node(receiver) ~= places:node(rank) then total = total + sent end
  end
  return total
end

-- all_to_allv by rank: calls, sizes, times.
local function uneven_by_rank(list, places)
  local sheet = { name = "nccl_all2allv_ranks", rows = {}, columns = sequences.join { { "rank", "calls",
    "sent (MB)", "received (MB)", "sent / mean", "dur_sum", "dur_mean", "dur_max", "throughput (GB/s)" },
    places and { "node", "sent to other nodes (MB)" } or {} } }
  local average = mean(sequences.map(list, function(one) return one.sums.sent or nil end))
  for i, one in ipairs(list) do
    local sums, rank = one.sums, one.rank
    local sent = sums.sent or nil
    sheet.rows[i] = { rank, sums.calls, sent, sums.received or nil,
      sent and average > 0 and sent / average or nil, sums.time, sums.time / sums.calls, sums.longest,
      sent and sums.time > 0 and sent / 1024 / (sums.time / 1e6) or nil, places and places:node(rank),
      places and sums.is_known and to_other_nodes(sums, rank, places) or nil }
  end
  return sheet
end

-- all_to_allv: the MB from each rank to each.
local function traffic(list)
  local receivers = {}
  for _, one in ipairs(list) do ordering.add_new(receivers, ordering.sorted_keys(one.sums.to)) end
  table.sort(receivers)
  local sheet = { name = "nccl_all2allv_traffic", rows = {}, columns = sequences.join { { "rank" },
    sequences.map(receivers, function(rank) return ("to rank %d (MB)"):format(rank) end) } }
  for _, one in ipairs(#receivers > 0 and list or {}) do
    if one.sums.is_known then
      local row = { one.rank }
      for i, receiver in ipairs(receivers) do row[i + 1] = one.sums.to[receiver] end
      sheet.rows[#sheet.rows + 1] = row
    end
  end
  return sheet
end

-- ---- all --------------------------------------------------------------------------------------

-- The sheets, also those without rows. places: of nodes.of, or nil.
function group_sheets.make(all, ranks, places)
  local uneven = sequences.filter(all, function(one)
    return one.metadata.name ~= nil and kinds.of(one.metadata.name).uneven
  end)
  local world_size = nodes.world_size_of(ranks)
  local by_rank = {}
  for rank_index, rank in ipairs(ranks) do
    local sums = sums_of_rank(uneven, rank_index, world_size)
    if sums then by_rank[#by_rank + 1] = { rank = rank.rank, sums = sums } end
  end
  return sequences.join { { summary_of_groups(all, places) },
    places and { summary_of_nodes(all, places) } or {},
    { uneven_by_rank(by_rank, places), traffic(by_rank) } }
end

return group_sheets
