-- The common part of the readers of nccl-tests' table and JSON: one message's result as a record.
local lists = require "lists.lists"
local sequences = require "base.sequences"

local nccl_row = {}

local function check(source, line, result)
  if result.redop ~= "sum" then
    source:fail(line, "redop is %s; rows are of sums (-o sum)", source.shown(result.redop))
  end
  if not lists.find("dtypes", result.type) then
    source:fail(line, "type is %s; rows are of float, half and bfloat16 (-d)", source.shown(result.type))
  end
end

-- The measured strategy: that of the line in output of gentables-bench, else that of --strategy.
local function strategy_of(source, line, result)
  if result.strategy then return source:name(line, "strategies", "strategy", result.strategy) end
  return source:name(nil, "strategies", "--strategy", source.options.strategy or "NCCL")
end

-- Enters a result { size, count, type, redop, time_us, wrong, strategy } (texts or numbers) into `out` = {
-- rows, no_time }; `run` = { world_size, mode, placement }. One that computed wrong sums has no time.
function nccl_row.enter(source, line, result, run, out)
  check(source, line, result)
  local dtype = lists.find("dtypes", result.type).name
  local size = source:whole(line, "size", result.size, 0)
  local count = source:whole(line, "count", result.count, 0)
  if size ~= count * source.bytes_of(dtype) then
    source:fail(line, "%d B are not %d elements of %s", size, count, result.type)
  end
  if count == 0 then return source:leave_out("a message without elements") end
  local num_tokens, hidden_size = source:shape_of_row(line, size, count)
  if num_tokens == false then return end
  local record = source.record { line = line, world_size = run.world_size, dtype = dtype, size = size,
    num_tokens = num_tokens, hidden_size = hidden_size, mode = run.mode, placement = run.placement,
    strategy = strategy_of(source, line, result) }
  local wrong = tonumber(result.wrong or 0)
  if wrong and wrong == 0 then
    record.time_us = source:time(line, "time", result.time_us)
    out.rows[#out.rows + 1] = record
  else
    record.reason = ("nccl-tests: %s wrong elements"):format(result.wrong)
    out.no_time[#out.no_time + 1] = record
  end
end

-- The number of groups of ranks in the devices, each with a communicator of its own (NCCL_TESTS_SPLIT).
local function groups_of(source, devices)
  local sizes, groups = {}, 0
  for _, device in ipairs(devices) do
    groups = sizes[device.group] and groups or groups + 1
    sizes[device.group] = (sizes[device.group] or 0) + 1
  end
  for group, size in pairs(sizes) do
    if size * groups ~= #devices then
      source:fail(nil, "group %s has %d of %d ranks in %d groups; groups of one size are required", group,
        size, #devices, groups)
    end
  end
  return groups
end

-- The ranks of a communicator, by the numbers of the ranks, not by their count: a log may be without some.
-- Devices are { { line =, rank =, group =, host =, id =, name = }... }. Returns the number, which is nil
-- without devices, or if a rank of several groups is missing, and the devices, none of them if a rank is
-- missing.
function nccl_row.ranks(source, devices)
  local seen, last = {}, -1
  for _, device in ipairs(devices) do
    local rank = source:whole(device.line, "rank", device.rank, 0, 65534)
    if seen[rank] then source:fail(device.line, "rank %d is listed twice", rank) end
    seen[rank], last = true, math.max(last, rank)
  end
  if #devices == 0 then return nil, devices end
  if #devices == last + 1 then return #devices // groups_of(source, devices), devices end
  local is_split = sequences.any(devices, function(device) return device.group ~= "0" end)
  source:leave_out("ranks without a line")
  return not is_split and last + 1 or nil, {}
end

-- The devices { { host =, id =, name = }... } as placement and machine.
function nccl_row.placement(devices)
  local seen = {}
  for _, device in ipairs(devices) do
    local key = device.host .. " " .. device.id
    if seen[key] then return "loopback" end
    seen[key] = true
  end
  return #devices > 0 and "dedicated" or "unknown"
end

-- "8 NVIDIA H100 80GB HBM3"; nil where no device is known.
function nccl_row.machine(devices)
  local names, counts = {}, {}
  for _, device in ipairs(devices) do
    if not counts[device.name] then names[#names + 1] = device.name end
    counts[device.name] = (counts[device.name] or 0) + 1
  end
  for i, name in ipairs(names) do names[i] = ("%d %s"):format(counts[name], name) end
  return names[1] and table.concat(names, " and ")
end

return nccl_row
