-- The table that nccl-tests prints, of versions 2.0 (without root) to 2.17 and later: columns by the words of
-- its header, ranks by its `Rank` lines. The out-of-place times are read; with --in-place, the in-place
-- times.
local nccl_row = require "reading.nccl_row"

local RANK = "^#%s+Rank%s+(%d+)%s(.-)on%s+(%S+)%s+device%s+%d+%s+%[([^%]]*)%]%s*(.-)%s*$"
-- A row with a damaged size: a count, a type and a reduction follow.
local DAMAGED = "^%s*%S*%d%S*%s+%d+%s+%l%w+%s+%l+%s"

-- The columns that the header names: name -> index; those of the second half (in-place) as name .. 2.
local function columns_of(source, line, text)
  local columns, index = {}, 0
  for _, word in ipairs(source.words((text:gsub("^#", "")))) do
    index = index + 1
    columns[columns[word] and word .. "2" or word] = index
  end
  columns.count_of_words = index
  if columns.cputime then source:fail(line, "has times of the CPU (-C 1), not of the collective") end
  for _, name in ipairs { "size", "count", "type", "redop", "time" } do
    if not columns[name] then source:fail(line, "there is no column %s", name) end
  end
  return columns
end

local function read_facts(source, line, text, run)
  local rank, process, host, id, name = text:match(RANK)
  if rank then
    run.devices[#run.devices + 1] = { line = line, rank = rank, group = process:match("Group%s+(%d+)") or "0",
      host = host, id = id, name = name }
  end
  local test = text:match("^# Collective test starting: (%S+)")
  if test and not test:find("all_reduce_perf") then
    source:fail(line, "is of %s; rows are of all_reduce_perf", test)
  end
  local graph = text:match("^# nThread.* graph: (%d+)")
  if graph then run.mode = graph == "0" and "eager" or "graph" end
  run.version = text:match("^# nccl%-tests version (%S+)") or run.version
  run.library = text:match("nccl%-library=(%d+)") or run.library
end

local function result_of(source, line, text, columns)
  local words = source.words(text)
  local extra = columns.timestamp and 1 or 0 -- a date and a time
  if #words ~= columns.count_of_words + extra then
    source:fail(line, "%d words; the header has %d", #words, columns.count_of_words + extra)
  end
  local half = source.options.in_place and "2" or ""
  if not columns["time" .. half] then source:fail(line, "there are no in-place times") end
  local wrong = words[columns["#wrong" .. half] or 0]
  return { size = words[columns.size], count = words[columns.count], type = words[columns.type],
    redop = words[columns.redop], time_us = words[columns["time" .. half]],
    wrong = wrong ~= "N/A" and wrong or nil, strategy = words[columns.strategy or 0] }
end

return function(source)
  local run, out, results, columns = { devices = {} }, { rows = {}, no_time = {} }, {}, nil
  for line, text in source:lines() do
    if text:find("^#%s+size%s+count%s+type%s") then
      columns = columns_of(source, line, text)
    elseif text:find("^#") then
      read_facts(source, line, text, run)
    elseif text:find("^%s*%d+%s+%d+%s") or columns and text:find(DAMAGED) then
      if not columns then source:fail(line, "a row before the line that names the columns") end
      results[#results + 1] = { line = line, result = result_of(source, line, text, columns) }
    elseif columns and text:find("^%s*%d") then
      source:fail(line, "a row that is cut off")
    end
  end
  if not columns then source:fail(nil, "has no line # size count type redop ...") end
  local ranks, devices = nccl_row.ranks(source, run.devices)
  run.world_size, run.placement = source:world_size(ranks), nccl_row.placement(devices)
  for _, entry in ipairs(results) do nccl_row.enter(source, entry.line, entry.result, run, out) end
  out.facts = { machine = nccl_row.machine(devices), version = run.version, library = run.library,
    in_place = source.options.in_place or false }
  return out
end
