-- The counts of gentables compare, recomputed from the text of the rows: a sweep against itself with one
-- strategy 20 % slower.
local comparison_page = require "report.comparison_page"
local sweep_comparison = require "report.sweep_comparison"
local file = require "core.file"
local lib = require "unit.report.lib"
local lu = require "luaunit"
local model = require "formats.model"

local SLOWED, FACTOR = "ONESHOT", 1.2
local FILE = "/benchmark.tp2.host.csv"
local host = os.getenv "SOURCE" .. "/tables/host"
local tests = {}

local function fields_of(line)
  local fields = {}
  for field in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = field end
  return fields
end

-- The lines of a file as records by the names in its head.
local function records_of(text)
  local names, records = nil, {}
  for line in text:gmatch("[^\n]+") do
    local fields, record = fields_of(line), {}
    for i, name in ipairs(names or {}) do record[name] = tonumber(fields[i]) or fields[i] end
    if names then records[#records + 1] = record end
    names = names or fields
  end
  return records
end

-- The text with the times of one strategy multiplied, and without launches.
local function slowed(text, factor)
  local names, out
  for line in text:gmatch("[^\n]+") do
    local fields = fields_of(line)
    for i, name in ipairs(names or {}) do
      local is_time = name == "time (us)" or name == "low (us)" or name == "high (us)"
      if is_time and fields[6] == SLOWED then fields[i] = ("%.4f"):format(factor * fields[i]) end
      if name == "launches (us)" then fields[i] = "" end
    end
    out = (out or "") .. table.concat(fields, ",") .. "\n"
    names = names or fields
  end
  return out
end

-- A folder with these rows and the sweep's spec.
local function folder_of(text)
  local folder = lib.folder()
  assert(file.write(folder .. FILE, text))
  assert(file.write(folder .. "/spec.lua", assert(file.read(host .. "/spec.lua")):gsub("{ 2, 4 }", "{ 2 }")))
  return folder
end

local function load(folder) return model.load(folder, "host", { against = "none" }) end

-- shape -> { best = record, [strategy] = record }
local function shapes_of(text)
  local shapes = {}
  for _, record in ipairs(records_of(text)) do
    local key = table.concat({ record.fusion, record.num_tokens, record.hidden_size }, " ")
    local shape = shapes[key] or {}
    shapes[key], shape[record.strategy] = shape, record
    local best = shape.best
    if not best or record["time (us)"] < best["time (us)"] then shape.best = record end
  end
  return shapes
end

local function expected(before, after)
  local out, other = { cells = 0, faster = 0, slower = 0, changed = 0 }, shapes_of(after)
  for key, shape in pairs(shapes_of(before)) do
    local a, b = shape.best, other[key].best
    out.cells = out.cells + 1
    if b["high (us)"] < a["low (us)"] then out.faster = out.faster + 1 end
    if b["low (us)"] > a["high (us)"] then out.slower = out.slower + 1 end
    if a.strategy ~= b.strategy then out.changed = out.changed + 1 end
  end
  return out
end

local function found(comparison)
  local out, least = { cells = 0, faster = 0, slower = 0, changed = 0 }, math.huge
  for _, group in ipairs(comparison.groups) do
    for name in pairs(out) do out[name] = out[name] + group.against[2][name] end
    for _, row in ipairs(group.against[2].at) do
      for _, cell in pairs(row) do least = math.min(least, cell.loss or 0) end
    end
  end
  return out, least
end

function tests.test_best_is_from_the_rows()
  local before = slowed(assert(file.read(host .. FILE)), 1)
  local after = slowed(before, FACTOR)
  local counts, least = found(sweep_comparison.of { load(folder_of(before)), load(folder_of(after)) })
  lu.assertEquals(counts, expected(before, after))
  lu.assertEquals(counts.faster, 0)
  lu.assertTrue(counts.slower > 0 and counts.changed > 0)
  lu.assertEquals(least, 0)
end

-- The title of the page of rows with this op, against themselves.
local function title_of(op)
  local folder, text = lib.folder(), assert(file.read(host .. FILE))
  assert(file.write(folder .. FILE, (text:gsub(",allreduce,", "," .. op .. ","))))
  local source = load(folder)
  return comparison_page.page({ source, source }, { "a", "b" }).title
end

function tests.test_the_title_is_of_the_op()
  lu.assertEquals(title_of "allreduce", "AllReduce: a against b")
  lu.assertEquals(title_of "allgather", "Collectives: a against b")
end

function tests.test_facts_of_the_machine_are_in_words()
  local source = load(host)
  local text = comparison_page.page({ source, source }, { "a", "b" }):render()
  lu.assertTrue(text:find("1 package, 1 NUMA node, 2 cores, 2 threads", 1, true) ~= nil)
  lu.assertNil(text:find("table: 0x", 1, true))
end

return require "suites" { { "comparison", tests } }
