-- A history: the rows of earlier sweeps in an SQLite database. One run is one benchmark file.
--
--   runs     one row each: arch, world_size, date, hash of the file, provenance (JSON: see run_changes), and
--            nodes (since schema 2)
--   series   each cell and strategy of any run
--   times    of a run and a series: time_us, launches (us) as in benchmark files, and level (launch_levels)
--
-- Every change is one transaction, so an interrupted one leaves the database as it was; others wait for it.
-- The database has an application id and the version of its schema (user_version). One of schema 1 gets that
-- of this version when a run is added; its runs are of one node.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local launch_levels = require "history.launch_levels"
local optional = require "base.optional"
local sequences = require "base.sequences"

local history_store = {}

local APPLICATION = 0x67747368 -- "gtsh"
local VERSION = 2
local CELL = { "dtype", "op", "mode", "fusion", "splits", "hidden_size", "num_tokens", "size", "strategy" }

local SCHEMA = {
  "CREATE TABLE runs (id INTEGER PRIMARY KEY, arch TEXT NOT NULL, world_size INTEGER NOT NULL, "
    .. "date TEXT NOT NULL, hash TEXT NOT NULL, provenance TEXT NOT NULL, nodes INTEGER NOT NULL DEFAULT 1, "
    .. "UNIQUE (arch, world_size, hash))",
  "CREATE TABLE series (id INTEGER PRIMARY KEY, dtype TEXT NOT NULL, op TEXT NOT NULL, mode TEXT NOT NULL, "
    .. "fusion TEXT NOT NULL, splits TEXT NOT NULL, hidden_size INTEGER NOT NULL, "
    .. "num_tokens INTEGER NOT NULL, size INTEGER NOT NULL, strategy TEXT NOT NULL, "
    .. "UNIQUE (dtype, op, mode, fusion, splits, hidden_size, num_tokens, size, strategy))",
  "CREATE TABLE times (run INTEGER NOT NULL REFERENCES runs, series INTEGER NOT NULL REFERENCES series, "
    .. "time_us REAL NOT NULL, level REAL NOT NULL, launches TEXT, PRIMARY KEY (run, series)) WITHOUT ROWID",
  ("PRAGMA application_id = %d"):format(APPLICATION),
  ("PRAGMA user_version = %d"):format(VERSION),
}

-- From the schema of each version to the next.
local CHANGES = {
  { "ALTER TABLE runs ADD COLUMN nodes INTEGER NOT NULL DEFAULT 1", "PRAGMA user_version = 2" },
}

-- ---- the database -----------------------------------------------------------------------------

local store = {}
store.__index = store

-- Runs a statement; raises a failure that names the database.
local function run(self, sql, each, ...)
  local done, message = self.database:query(sql, each or function() end, ...)
  if not done then fail.work("%s: %s", self.path, message) end
end

local function value_of(self, sql, ...)
  local value
  run(self, sql, function(first) value = first end, ...)
  return value
end

-- Calls `work` in a transaction; if it raises, nothing of it remains.
local function transact(self, work)
  run(self, "BEGIN IMMEDIATE")
  local done, result = pcall(work)
  if not done then
    self.database:query("ROLLBACK", function() end)
    error(result, 0)
  end
  run(self, "COMMIT")
  return result
end

-- Refuses a database that is not a history. Returns whether it is empty; sets self.version if it is not.
local function is_empty(self)
  if value_of(self, "SELECT count(*) FROM sqlite_master") == 0 then return true end
  if value_of(self, "PRAGMA application_id") ~= APPLICATION then
    fail.input("%s: is a database of another program; name another file with --database", self.path)
  end
  local version = value_of(self, "PRAGMA user_version")
  if version > VERSION then
    fail.input("%s: is a history of a later version of gentables (schema %d; this version reads %d)",
      self.path, version, VERSION)
  end
  self.version = version
end

local function make_tables(self)
  if not is_empty(self) then return end -- another process was first
  for _, sql in ipairs(SCHEMA) do run(self, sql) end
  self.version = VERSION
end

-- Gives a database the schema of this version.
local function bring_up_to_date(self)
  is_empty(self) -- another process may have changed it
  for version = self.version, VERSION - 1 do
    for _, sql in ipairs(CHANGES[version]) do run(self, sql) end
  end
  self.version = VERSION
end

-- Returns the module of SQLite. Raises a failure if the program was built without it.
function history_store.check_sqlite()
  return optional "core.sqlite"
    or fail.input("a history needs SQLite, and this gentables was built without it (Debian: libsqlite3-dev)")
end

-- The history at `path`, which is made if `creates`. Raises a failure if that is not possible.
function history_store.open(path, creates)
  local sqlite = history_store.check_sqlite()
  if not creates and not file.exists(path) then
    fail.input("%s: has no history; gentables history add makes one", path)
  end
  local database, message = sqlite.create(path)
  if not database then fail.input("%s: %s", path, message) end
  local self = setmetatable({ path = path, database = database }, store)
  if is_empty(self) then
    if not creates then fail.input("%s: has no history; gentables history add makes one", path) end
    transact(self, function() make_tables(self) end)
  elseif creates and self.version < VERSION then
    transact(self, function() bring_up_to_date(self) end)
  end
  self.nodes = self.version > 1 and "nodes" or "1" -- of a run, in SQL
  return self
end

function store:close() self.database:close() end

-- ---- adding -----------------------------------------------------------------------------------

local function launches_text(record)
  local out = {}
  for i, time_us in ipairs(record.launches or {}) do out[i] = time_us and ("%.17g"):format(time_us) or "" end
  return out[1] and table.concat(out, ";") or false
end

local function series_values(record)
  return sequences.map(CELL, function(name) return record[name] or "" end)
end

local function series_key(values) return table.concat(values, " ") end

-- Runs an insertion for each list of values.
local function insert(self, sql, lists)
  local done, message = self.database:insert(sql, lists)
  if not done then fail.work("%s: %s", self.path, message) end
end

-- The ids of the series of records, which are added where they are new: series_key -> id.
local function ids_of(self, records)
  local ids = {}
  insert(self, ("INSERT OR IGNORE INTO series (%s) VALUES (%s)"):format(table.concat(CELL, ", "),
    ("?, "):rep(#CELL - 1) .. "?"), sequences.map(records, series_values))
  run(self, ("SELECT id, %s FROM series"):format(table.concat(CELL, ", ")), function(id, ...)
    ids[series_key { ... }] = id
  end)
  return ids
end

-- Whether most launches of an earlier run are among these: the sweep was continued. `texts`: series ->
-- launches.
local function continues(self, earlier, texts)
  local common, same = 0, 0
  run(self, "SELECT series, launches FROM times WHERE run = ? AND launches IS NOT NULL",
    function(series, launches)
      if not texts[series] then return end
      common = common + 1
      if texts[series]:sub(1, #launches) == launches then same = same + 1 end
    end, earlier)
  return common > 0 and 2 * same > common
end

local function delete(self, id)
  run(self, "DELETE FROM times WHERE run = ?", nil, id)
  run(self, "DELETE FROM runs WHERE id = ?", nil, id)
end

local function add(self, entry)
  local arch, size, nodes = entry.arch, entry.world_size, entry.nodes or 1
  if value_of(self, "SELECT id FROM runs WHERE arch = ? AND world_size = ? AND hash = ?", arch, size,
    entry.hash) then
    return "known"
  end
  local ids, level_of, texts, times = ids_of(self, entry.records), launch_levels.of(entry.records), {}, {}
  local id = value_of(self, "SELECT coalesce(max(id), 0) + 1 FROM runs")
  for i, record in ipairs(entry.records) do
    local series = ids[series_key(series_values(record))]
    local launches = launches_text(record)
    texts[series] = launches or nil
    times[i] = { id, series, record.time_us, level_of[record], launches }
  end
  local earlier = value_of(self, "SELECT id FROM runs WHERE arch = ? AND world_size = ? AND nodes = ? "
    .. "AND date <= ? ORDER BY date DESC, id DESC LIMIT 1", arch, size, nodes, entry.date)
  local replaces = earlier and continues(self, earlier, texts)
  if replaces then delete(self, earlier) end
  run(self, "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", nil, id, arch, size, entry.date, entry.hash,
    json.compact(entry.provenance), nodes)
  insert(self, "INSERT INTO times VALUES (?, ?, ?, ?, ?)", times)
  return replaces and "replaced" or "added"
end

-- Adds a benchmark file: { arch, world_size, nodes (nil: 1), date (text that sorts by time), hash (of the
-- file), records (of core.rows), provenance (a table) }. The store was opened with `creates`. Returns
-- "added"; "replaced", if the rows continue the sweep of the run before, which they replace; or "known", if
-- the history already has them.
function store:add(entry)
  table.sort(entry.records, cell_records.before)
  return transact(self, function() return add(self, entry) end)
end

-- ---- reading ----------------------------------------------------------------------------------

-- { { arch, world_size, nodes }... }, sorted.
function store:histories()
  local out = {}
  local sql = "SELECT DISTINCT arch, world_size, %s FROM runs ORDER BY 1, 3, 2"
  run(self, sql:format(self.nodes), function(arch, size, nodes)
    out[#out + 1] = { arch = arch, world_size = size, nodes = nodes }
  end)
  return out
end

local function runs_of(self, name)
  local runs = {}
  local sql = "SELECT id, date, provenance FROM runs WHERE arch = ? AND world_size = ? AND %s = ? "
    .. "ORDER BY date, id"
  run(self, sql:format(self.nodes), function(id, date, text)
    local record, message = json.decode(text)
    if not record then fail.input("%s: run %d: %s", self.path, id, message) end
    runs[#runs + 1] = { id = id, date = date, provenance = record, rows = 0 }
  end, name.arch, name.world_size, name.nodes)
  return runs
end

-- The levels of each run, as { id of a series, level, ... }, and the set of these ids.
local function levels_of(self, runs)
  local levels, seen = {}, {}
  for i, entry in ipairs(runs) do
    local of_run, count = {}, 0
    run(self, "SELECT series, level FROM times WHERE run = ?", function(id, level)
      of_run[count + 1], of_run[count + 2], count = id, level, count + 2
      seen[id] = true
    end, entry.id)
    levels[i], entry.rows = of_run, count // 2
  end
  return levels, seen
end

local function before(a, b)
  if a.splits ~= b.splits then return (a.splits or "") < (b.splits or "") end
  return cell_records.before(a, b)
end

-- These series, those of a cell beside each other.
local function series_of(self, size, seen)
  local list = {}
  run(self, ("SELECT id, %s FROM series"):format(table.concat(CELL, ", ")), function(id, ...)
    if not seen[id] then return end
    local record = { id = id, world_size = size }
    for i, name in ipairs(CELL) do record[name] = select(i, ...) end
    if record.splits == "" then record.splits = nil end
    list[#list + 1] = record
  end)
  table.sort(list, before)
  return list
end

-- The history of a name of store:histories: { arch, world_size, nodes, runs = { { date, provenance, rows }...
-- } in the order of their dates, and model, for change_points.find }.
function store:read(name)
  local runs = runs_of(self, name)
  local levels, seen = levels_of(self, runs)
  local series = series_of(self, name.world_size, seen)
  local index_of = sequences.indices(sequences.field(series, "id"))
  for _, of_run in ipairs(levels) do
    for i = 1, #of_run, 2 do of_run[i] = index_of[of_run[i]] end
  end
  return { arch = name.arch, world_size = name.world_size, nodes = name.nodes, runs = runs,
    model = { runs = #runs, series = series, levels = levels } }
end

return history_store
