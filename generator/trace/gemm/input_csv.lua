-- The rows of an existing variance CSV, also of other programs, and their GEMMs: by threads, channel and
-- rank, and by the op's name and all its parameters. Its other columns are kept.
local csv = require "codec.csv"
local fail = require "base.fail"
local sequences = require "base.sequences"

local input_csv = {}

local KEYS = { "threads", "channel", "rank" }

-- A cell in the form for comparisons: numbers by value, truth values as Python writes them.
local function plain(value)
  if value == nil then return "" end
  if type(value) == "boolean" then return value and "True" or "False" end
  local number = tonumber(value)
  return number and ("%.17g"):format(number) or tostring(value)
end

local function rank_key(threads, channels, rank)
  return ("%s %s %s"):format(plain(threads), plain(channels), plain(rank))
end

-- The key of a GEMM in a CSV's row: { title of the sheet GEMM, value }.
local function identity(row, columns, with_spec)
  return sequences.map(columns, function(column)
    local title = column:match("^col_(name)$") or column:match("^col_(param: .*)$")
      or with_spec and column:match("^col_(Compute Spec)$")
    return title and { title, plain(row[column]) }
  end)
end

-- path -> { path, columns, rows, of(entry) -> indices of its rows }
function input_csv.read(path)
  local found = fail.unless(csv.read(path))
  local there = sequences.set(found.columns)
  for _, column in ipairs { "threads", "channel", "rank", "col_name" } do
    if not there[column] then
      fail.input("%s: has no column %s; give the CSV of trace variance", path, column)
    end
  end
  local indices = {}
  for index, row in ipairs(found.rows) do
    table.insert(sequences.at(indices, rank_key(row[KEYS[1]], row[KEYS[2]], row[KEYS[3]])), index)
  end
  return { path = path, columns = found.columns, rows = found.rows,
    of = function(entry) return indices[rank_key(entry.threads, entry.channels, entry.rank)] or {} end }
end

local function number_of(wanted, gemm)
  local column_of = sequences.indices(gemm.columns)
  for number, cells in ipairs(gemm.rows) do
    local same = sequences.all(wanted, function(pair)
      local column = column_of[pair[1]]
      return plain(column and cells[column]) == pair[2]
    end)
    if same then return number end
  end
end

-- The number of the GEMM (columns, rows of the sheet) in the row at `index`: of those with the same name and
-- parameters the one with the same spec, or else the first; nil: none.
function input_csv.find(input, index, gemm)
  local row, columns = input.rows[index], input.columns
  return number_of(identity(row, columns, true), gemm) or number_of(identity(row, columns), gemm)
end

return input_csv
