-- The output of osu_allreduce of the OSU micro-benchmarks, 3 to 7: the mean over ranks of each rank's mean
-- time. It contains neither the number of ranks (--tp) nor the strategy (--strategy, default MPI). Up to
-- version 6 the elements are MPI_FLOAT; later versions print the data type.
local dtypes = { MPI_FLOAT = "float32" }
local LAST_OF_FLOATS = 6
-- A size, also a damaged one, and a number. A row that is cut off has a size alone.
local ROW, CUT_OFF = "^%s*[^%s#]*%d[^%s#]*%s+[%d.]+%f[%s\0]", "^%s*%d"

-- The names of columns in a line: "Size", "Avg Latency(us)"..., two spaces apart or more.
local function columns_of(text)
  local columns = {}
  for name in (text:gsub("^#%s*", "") .. "  "):gmatch("(.-)%s%s+") do
    if name ~= "" then columns[#columns + 1] = name end
  end
  return columns
end

local function dtype_of(source, facts, line)
  if source.options.dtype then return source:dtype() end
  local word = facts.datatype
  if not word and (tonumber(facts.version:match("^%d+")) or math.huge) <= LAST_OF_FLOATS then
    return dtypes.MPI_FLOAT
  end
  if not dtypes[word] then
    source:fail(line, "is of %s, which is no data type of a table; run osu_allreduce -T mpi_float, or give "
      .. "--dtype", word or "an unnamed data type")
  end
  return dtypes[word]
end

local function row(source, line, text, columns, facts)
  local words = source.words(text)
  if #words ~= #columns then source:fail(line, "%d numbers; the header has %d", #words, #columns) end
  local dtype, named = dtype_of(source, facts, line), {}
  for i, name in ipairs(columns) do named[name] = words[i] end
  local size = source:whole(line, "Size", named.Size)
  local bytes = source.bytes_of(dtype)
  if size % bytes ~= 0 then source:fail(line, "%d B are no whole elements of %s", size, dtype) end
  local num_tokens, hidden_size = source:shape_of_row(line, size, size // bytes)
  if num_tokens == false then return nil end
  local record = source.record { line = line, world_size = facts.world_size, dtype = dtype, size = size,
    num_tokens = num_tokens, hidden_size = hidden_size, mode = "eager", strategy = facts.strategy }
  if named.Validation and named.Validation ~= "Pass" then
    record.reason = "osu_allreduce: validation: " .. named.Validation
  else
    record.time_us = source:time(line, "Avg Latency(us)", named["Avg Latency(us)"])
  end
  return record
end

-- Reads a line that is no row; raises for the title and the columns of another test, which may follow in a
-- log of several. Returns whether it is a title.
local function read_fact(source, line, text, facts)
  local title, version = text:match("OSU MPI%S*%s+(.-) Test v?(%S+)")
  if title and title ~= "Allreduce Latency" then
    source:fail(line, "is of %s; rows are of Allreduce", (title:gsub(" Latency$", "")))
  elseif text:find("^#%s*Size%s+%a") then
    source:fail(line, "has no times of an allreduce: %s", source.shown(text))
  end
  facts.version = version or facts.version
  facts.datatype = text:match("^#%s*Datatype:%s*([%w_]+)") or facts.datatype
  return title ~= nil
end

return function(source)
  local out, columns = { rows = {}, no_time = {} }, nil
  local facts = { world_size = source:world_size(), version = "",
    strategy = source:name(nil, "strategies", "--strategy", source.options.strategy or "MPI") }
  for line, text in source:lines() do
    if text:find("^#?%s*Size%s+Avg Latency") then
      columns = columns_of((text:gsub("^%s+", "")))
    elseif not read_fact(source, line, text, facts) and (text:find(ROW) or text:find(CUT_OFF)) then
      if not columns then source:fail(line, "a row before the line # Size  Avg Latency(us) ...") end
      local record = row(source, line, text, columns, facts)
      if record then table.insert(record.time_us and out.rows or out.no_time, record) end
    end
  end
  if not columns then source:fail(nil, "has no line # Size  Avg Latency(us) ...; is it cut off?") end
  out.facts = { version = facts.version }
  return out
end
