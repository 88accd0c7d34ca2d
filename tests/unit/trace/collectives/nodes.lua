-- Collectives by process group and by node, and all_to_allv by rank: four ranks on two nodes.
local luaunit = require "luaunit"
local nodes = require "trace.collectives.nodes"
local rank_sheets = require "trace.collectives.rank_sheets"

local MB = 2 ^ 20

-- The data of rank_sheets.make of a rank with these events: { metadata, start, duration }.
local function rank_of(number, events)
  local out = { rank = number, base_nanoseconds = 1, world_size = 4, events = {}, metadata = {} }
  for i, event in ipairs(events) do
    out.metadata[i] = event[1]
    out.events[i] = { start = event[2] + 0.0, duration = event[3] + 0.0, stream = 7, uid = i, metadata = i }
  end
  return out
end

local function collective(name, group, members, in_elements, out_elements, split)
  return { name = name, kernel = "ncclDevKernel", dtype = "Byte", group = group, ranks = members,
    group_size = select(2, members:gsub("%d+", "")), in_elements = in_elements, out_elements = out_elements,
    in_split = split }
end

local PAIRS = { [0] = "[0, 1]", "[0, 1]", "[2, 3]", "[2, 3]" }
-- The elements that each rank sends to each, of one byte.
local SENT = { [0] = { 1, 1, 2, 0 }, { 0, 1, 1, 2 }, { 4, 0, 0, 0 }, { 1, 1, 1, 1 } }

-- An allreduce of 2 MB in each pair of ranks in 10 µs, two of 4 MB over all ranks in 40 µs each, and an
-- all_to_allv of 4 MB from each rank.
local function four_ranks()
  local ranks = {}
  for rank = 0, 3 do
    local received = 0
    for sender = 0, 3 do received = received + SENT[sender][rank + 1] end
    ranks[rank + 1] = rank_of(rank, {
      { collective("allreduce", "tp", PAIRS[rank], 2 * MB, 2 * MB), 100, 10 },
      { collective("allreduce", "dp", "[0, 1, 2, 3]", 4 * MB, 4 * MB), 200, 40 },
      { collective("allreduce", "dp", "[0, 1, 2, 3]", 4 * MB, 4 * MB), 300, 40 },
      { collective("all_to_allv", "ep", "[0, 1, 2, 3]", 4 * MB, received * MB,
        "[" .. table.concat(SENT[rank], ", ") .. "]"), 400, 20 + rank } })
  end
  return ranks
end

local function sheets(ranks, gpus_per_node)
  local list, notes = rank_sheets.make(ranks, {}, gpus_per_node)
  local out = {}
  for _, sheet in ipairs(list) do
    out[sheet.name] = sheet
    function sheet.cell(row, title)
      for i, name in ipairs(sheet.columns) do
        if name == title then return sheet.rows[row][i] end
      end
      error("no column " .. title)
    end
  end
  return out, notes
end

local function column(sheet, title)
  local out = {}
  for row = 1, #sheet.rows do out[row] = sheet.cell(row, title) or "none" end
  return out
end

local TestNodes = {}

function TestNodes.test_groups_have_their_name_size_span_time_and_bandwidth()
  local groups = sheets(four_ranks(), 2).nccl_summary_groups
  luaunit.assertEquals(column(groups, "Process Group Name"), { "dp", "ep", "tp", "tp" })
  luaunit.assertEquals(column(groups, "Group size"), { 4, 4, 2, 2 })
  luaunit.assertEquals(column(groups, "span"), { "inter_node", "inter_node", "intra_node", "intra_node" })
  luaunit.assertEquals(column(groups, "nodes"), { 2, 2, 1, 1 })
  luaunit.assertEquals(column(groups, "count"), { 2, 1, 1, 1 })
  luaunit.assertEquals(column(groups, "Total comm latency (ms)"), { 0.08, 0.02, 0.01, 0.01 })
  luaunit.assertEquals(column(groups, "Total msg size (MB)"), { 8.0, "none", 2.0, 2.0 })
  luaunit.assertAlmostEquals(groups.cell(1, "algo bw (GB/s)_mean"), 4 / 1024 / 40e-6, 1e-9)
  luaunit.assertAlmostEquals(groups.cell(1, "bus bw (GB/s)_mean"), 1.5 * 4 / 1024 / 40e-6, 1e-9)
end

function TestNodes.test_collectives_within_and_between_nodes()
  local spans = sheets(four_ranks(), 2).nccl_summary_nodes
  luaunit.assertEquals(column(spans, "span"), { "inter_node", "intra_node" })
  luaunit.assertEquals(column(spans, "count"), { 3, 2 })
  luaunit.assertEquals(column(spans, "Total comm latency (ms)"), { 0.1, 0.02 })
  luaunit.assertAlmostEquals(spans.cell(1, "algo bw (GB/s)"), 8 / 1024 / 80e-6, 1e-9)
  luaunit.assertAlmostEquals(spans.cell(2, "bus bw (GB/s)"), 2 / 1024 / 10e-6, 1e-9)
end

function TestNodes.test_ranks_have_their_node()
  local made = sheets(four_ranks(), 2)
  luaunit.assertEquals(column(made.nccl_all2allv_ranks, "node"), { 0, 0, 1, 1 })
  for row = 1, #made.nccl_long.rows do
    luaunit.assertEquals(made.nccl_long.cell(row, "node"), made.nccl_long.cell(row, "rank") // 2)
  end
  for row = 1, 4 do
    local stragglers = made.straggler_summary
    luaunit.assertEquals(stragglers.cell(row, "node"), stragglers.cell(row, "rank") // 2)
  end
end

function TestNodes.test_all_to_allv_by_rank()
  local made = sheets(four_ranks(), 2)
  local by_rank, traffic = made.nccl_all2allv_ranks, made.nccl_all2allv_traffic
  luaunit.assertEquals(column(by_rank, "sent (MB)"), { 4.0, 4.0, 4.0, 4.0 })
  luaunit.assertEquals(column(by_rank, "received (MB)"), { 6.0, 3.0, 4.0, 3.0 })
  luaunit.assertEquals(column(by_rank, "sent / mean"), { 1.0, 1.0, 1.0, 1.0 })
  luaunit.assertEquals(column(by_rank, "sent to other nodes (MB)"), { 2.0, 3.0, 4.0, 2.0 })
  luaunit.assertEquals(column(by_rank, "dur_sum"), { 20.0, 21.0, 22.0, 23.0 })
  for rank = 0, 3 do
    for receiver = 0, 3 do
      luaunit.assertEquals(traffic.cell(rank + 1, ("to rank %d (MB)"):format(receiver)),
        SENT[rank][receiver + 1] + 0.0)
    end
  end
end

function TestNodes.test_traffic_without_usable_splits()
  local ranks = four_ranks()
  ranks[1].metadata[4].in_split = "[]" -- equal parts
  ranks[2].metadata[4].in_split = "[1, 2, ...]"
  local made = sheets(ranks, 2)
  luaunit.assertEquals(column(made.nccl_all2allv_traffic, "rank"), { 0, 2, 3 })
  luaunit.assertEquals(made.nccl_all2allv_traffic.rows[1], { 0, 1.0, 1.0, 1.0, 1.0 })
  luaunit.assertEquals(column(made.nccl_all2allv_ranks, "sent to other nodes (MB)"),
    { 2.0, "none", 4.0, 2.0 })
end

function TestNodes.test_nodes_come_from_the_devices_of_the_traces()
  local ranks = four_ranks()
  luaunit.assertNil(sheets(ranks).nccl_summary_nodes)
  for _, rank in ipairs(ranks) do rank.devices = 2 end
  luaunit.assertEquals(column(sheets(ranks).nccl_summary_nodes, "span"), { "inter_node", "intra_node" })
  for _, rank in ipairs(ranks) do rank.devices = 8 end -- a part of one node
  luaunit.assertEquals(column(sheets(ranks).nccl_summary_nodes, "span"), { "intra_node" })
  for _, rank in ipairs(ranks) do rank.devices = 1 end -- each has only its own
  luaunit.assertNil(sheets(ranks).nccl_summary_nodes)
  for _, rank in ipairs(ranks) do rank.devices = 3 end
  local made, notes = sheets(ranks)
  luaunit.assertNil(made.nccl_summary_nodes)
  luaunit.assertStrContains(table.concat(notes, "\n"),
    "the traces have 3 devices, which do not divide the 4 ranks: nodes are unknown; give --gpus-per-node")
end

function TestNodes.test_a_number_that_does_not_divide_the_ranks_is_refused()
  luaunit.assertErrorMsgContains("--gpus-per-node 3 does not divide the 4 ranks", sheets, four_ranks(), 3)
end

function TestNodes.test_ranks_of_a_group()
  luaunit.assertEquals(nodes.members({ ranks = "[1, 3]", group_size = 2 }, 4), { 1, 3 })
  luaunit.assertEquals(nodes.members({ ranks = "[0, 1, ..., 3]", group_size = 4 }, 4), { 0, 1, 2, 3 })
  luaunit.assertNil(nodes.members({ ranks = "[0, 1, ..., 3]", group_size = 4 }, 8))
end

return require "suites" { { "TestNodes", TestNodes } }
