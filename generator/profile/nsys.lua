-- GPU activity from an nsys export (nsys export --type sqlite), in the shape of core.activity's; see
-- activity.lua. Empty tables are missing from exports, and columns differ between versions.
local fail = require "base.fail"
local sequences = require "base.sequences"

local nsys = {}

-- Calls each(column...) for the rows of a query of source.database; errors name source.path.
function nsys.query(source, sql, each, ...)
  local done, message = source.database:query(sql, each, ...)
  if not done then fail.input("%s: %s", source.path, message) end
end

-- The columns of a table as a set; nil: the table is missing.
function nsys.columns_of(source, name)
  local columns
  nsys.query(source, "SELECT name FROM pragma_table_info(?)", function(column)
    columns = columns or {}
    columns[column] = true
  end, name)
  return columns
end

-- The first of the names that is a column.
local function first_of(columns, ...)
  return sequences.find({ ... }, function(name) return columns[name] end)
end

local function empty() return { start = {}, stop = {}, name = {}, device = {}, stream = {}, bytes = {},
  process = {} } end

-- globalPid and globalTid contain the process above their lowest 24 bits.
local function process_of(global) return global and (global >> 24) & 0xFFFFFF or 0 end

local function append(list, start, stop, name, device, stream, bytes, global)
  local i = #list.start + 1
  list.start[i], list.stop[i], list.name[i] = start, stop, name
  list.device[i], list.stream[i], list.bytes[i] = device or 0, stream or 0, bytes or -1
  list.process[i] = process_of(global)
end

-- Reads a CUPTI_ACTIVITY_KIND_ table. Its `name` is an SQL expression over t and s (StringIds).
local function read_table(source, table_name, columns, name, name_id)
  local list = empty()
  local function column(wanted) return columns[wanted] and ('t."%s"'):format(wanted) or "NULL" end
  local join = name_id and source.has_strings and ("LEFT JOIN StringIds s ON s.id = t.%s"):format(name_id)
  nsys.query(source, ("SELECT t.start, t.\"end\", %s, %s, %s, %s, %s FROM %s t %s ORDER BY t.start"):format(
    name, column "deviceId", column "streamId", column "bytes", column "globalPid", table_name, join or ""),
    function(start, stop, ...)
      if math.type(start) == "integer" and math.type(stop) == "integer" and stop >= start then
        append(list, start, stop, ...)
      else
        source.left_out = source.left_out + 1
      end
    end)
  return list
end

local function read_kernels(source)
  local table_name = "CUPTI_ACTIVITY_KIND_KERNEL"
  local columns = nsys.columns_of(source, table_name)
  if not columns then
    fail.input("%s: has no kernels: no table %s; nsys profile --trace cuda records them", source.path,
      table_name)
  end
  local id = first_of(columns, "demangledName", "mangledName", "shortName", "name")
  if not (id and columns.start and columns["end"]) then
    fail.input("%s: %s has no name, start or end", source.path, table_name)
  end
  local name = source.has_strings and ("CAST(coalesce(s.value, t.%s) AS TEXT)"):format(id)
  return read_table(source, table_name, columns, name or ("CAST(t.%s AS TEXT)"):format(id), id)
end

-- The numbers of CUpti_ActivityMemcpyKind.
local copy_kinds = "CASE t.copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' " ..
  "WHEN 8 THEN 'Memcpy DtoD' WHEN 9 THEN 'Memcpy HtoH' WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END"

local function read_optional(source, table_name, name)
  local columns = nsys.columns_of(source, table_name)
  if not columns then return empty() end
  if name == copy_kinds and not columns.copyKind then name = "'Memcpy'" end
  return read_table(source, table_name, columns, name)
end

-- NVTX ranges that could be marks of steps.
local function read_marks(source)
  local list, columns = empty(), nsys.columns_of(source, "NVTX_EVENTS")
  if not columns or not (columns.text and columns["end"]) then return list end
  local text, join = "n.text", ""
  if columns.textId and source.has_strings then
    text, join = "coalesce(n.text, s.value)", "LEFT JOIN StringIds s ON s.id = n.textId"
  end
  local thread = columns.globalTid and "n.globalTid" or "NULL"
  nsys.query(source, ([[SELECT n.start, n."end", %s AS words, %s FROM NVTX_EVENTS n %s
    WHERE n."end" IS NOT NULL AND (words LIKE 'ProfilerStep#%%' OR words LIKE 'step%%' OR words LIKE 'iter%%')
    ORDER BY n.start]]):format(text, thread, join),
    function(start, stop, name, global) append(list, start, stop, name, nil, nil, nil, global) end)
  return list
end

-- Graphs that were recorded as a whole contain no kernels: every sum would be too small.
local function refuse_whole_graphs(source)
  if nsys.columns_of(source, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE") then
    fail.input("%s: has CUDA graphs without their kernels; nsys profile --cuda-graph-trace node records them",
      source.path)
  end
end

-- path, core.sqlite -> the same as core.activity.read
function nsys.read(path, sqlite)
  local database, message = sqlite.open(path)
  if not database then fail.input("%s: %s", path, message) end
  local source = { path = path, database = database, left_out = 0 }
  source.has_strings = nsys.columns_of(source, "StringIds") ~= nil
  refuse_whole_graphs(source)
  local read = { collectives = {}, gemms = {},
    kernels = read_kernels(source),
    copies = read_optional(source, "CUPTI_ACTIVITY_KIND_MEMCPY", copy_kinds),
    sets = read_optional(source, "CUPTI_ACTIVITY_KIND_MEMSET", "'Memset'"),
    marks = read_marks(source) }
  read.left_out = source.left_out
  database:close()
  return read
end

return nsys
