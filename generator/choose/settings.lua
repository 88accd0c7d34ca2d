-- Settings of a choice, from the command line or the spec: which strategies may win, for which shapes, and
-- the incumbent. select.c explains the rule.
--
-- In a spec this is choice = { numerics = "stable", workload = "workload.csv", at = "corner",
-- regret = 0.01 }.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local provenance = require "base.lazy" "rows.provenance"
local sequences = require "base.sequences"
local spec = require "base.lazy" "rows.spec"
local tables = require "core.table"

local settings = {}

settings.options = {
  { name = "against", value = "TABLE",
    help = "an earlier table.csv; its choices stay if they lose hardly more than the best; or none " ..
      "(default: that of --out or beside the rows)" },
  { name = "numerics", value = "CLASS",
    help = "stable: equal bits in all choices of a row of token counts, those of --against if it exists; " ..
      "same-as=STRATEGY (or stable=, bitwise-class=): only strategies with its bits; any (default)" },
  { name = "workload", value = "FILE",
    help = "the shapes to choose for, as tokens,hidden_size,weight (default: all shapes)" },
  { name = "choose", value = "WHAT", values = { "bin", "corner" },
    help = "bin: for all shapes that a lookup sends to a cell; corner: for the cell's own (default: bin)" },
  { name = "regret", value = "SHARE",
    help = "loss that a cell may have for fewer thresholds (default, minimum: 0.0025; by bytes: 0.02)" },
  { name = "allow-loopback",
    help = "make a table of smNN also from rows of several ranks on one GPU; the table mentions them" },
}

-- ---- numerics ---------------------------------------------------------------------------------

local naming = { ["same-as"] = true, ["stable"] = true, ["bitwise-class"] = true }

-- The strategy with the required bits, nil: any bits; and whether each row of token counts keeps to one
-- class. `where` is for messages.
function settings.numerics(text, where)
  if text == nil or text == "any" then return nil, false end
  if text == "stable" then return nil, true end
  local word, name = text:match("^([%l-]+)=(.+)$")
  local row = naming[word] and lists.find("strategies", name)
  if not row or row.candidate == false then
    fail.input("%s: %s is no class; valid: stable, stable=NCCL, same-as=NCCL, bitwise-class=ONESHOT, any",
      where, text)
  end
  return row.name, false
end

-- The numerics of the choices of a source, as --numerics has them; nil: any.
function settings.numerics_word(source)
  return source.stable and "stable" or source.same_bits_as and "same-as=" .. source.same_bits_as or nil
end

-- ---- a workload -------------------------------------------------------------------------------

local header = "tokens,hidden_size,weight"

local function read_line(path, number, line)
  local tokens, hidden_size, weight = line:match("^%s*(%d+)%s*,%s*(%d+)%s*,%s*([%d.eE+-]+)%s*$")
  tokens, hidden_size, weight = math.tointeger(tokens), math.tointeger(hidden_size), tonumber(weight)
  if not (tokens and hidden_size and weight) or tokens < 1 or hidden_size < 1 then
    fail.input("%s:%d: %s is no shape; expected a line such as 128,4096,0.25", path, number, line)
  end
  if weight < 0 or weight == math.huge then
    fail.input("%s:%d: a weight of %g; a number of at least 0 is required", path, number, weight)
  end
  return { num_tokens = tokens, hidden_size = hidden_size, weight = weight }
end

-- Scales weights by a power of two, so that the largest is about 1 and no sum overflows. Only negligible
-- weights are rounded.
local function scale(shapes, largest)
  local exponent = math.floor(math.log(largest, 2))
  for _, shape in ipairs(shapes) do
    shape.weight = shape.weight * 2.0 ^ -(exponent // 2) * 2.0 ^ -(exponent - exponent // 2)
  end
end

-- Reads the text of a workload file: { { num_tokens, hidden_size, weight, line }... }; of the weights only
-- their ratios are kept. `path` is for messages.
local function read_workload(path, text)
  local out, number, largest = {}, 0, 0
  for line in (text:gsub("\r\n", "\n") .. "\n"):gmatch("([^\n]*)\n") do
    number = number + 1
    if number == 1 then
      if line:gsub("%s", "") ~= header then
        fail.input("%s:1: %s; a workload begins with %s", path, line == "" and "it is empty" or line, header)
      end
    elseif line:find("%S") then
      local shape = read_line(path, number, line)
      shape.line, largest = number, math.max(largest, shape.weight)
      out[#out + 1] = shape
    end
  end
  if largest == 0 then fail.input("%s: no shape has a weight above 0", path) end
  scale(out, largest)
  return out
end

local function is_within(axis, value) return value >= axis[1] and value <= axis[#axis] end

-- Raises unless each shape of a workload lies within the sizes of some block of a table (of core.table).
function settings.check_workload(path, shapes, blocks)
  for _, shape in ipairs(shapes) do
    local known = sequences.any(blocks, function(block)
      return is_within(block.hidden_sizes, shape.hidden_size)
        and is_within(block.num_tokens, shape.num_tokens)
    end)
    if not known then
      fail.input("%s:%d: %d tokens of hidden size %d lie outside the measured sizes; measure them, or leave "
        .. "the line out", path, shape.line, shape.num_tokens, shape.hidden_size)
    end
  end
end

-- The workload for which the choices of a source (of model.load) are made, in words; nil: none. Its file is
-- identified by name and by content, because other files may have that name.
function settings.workload_in_words(source)
  if not source.workload then return nil end
  local count = #source.workload
  return ("the %s of %s, by their weights (hash %s)"):format(count == 1 and "shape" or count .. " shapes",
    source.workload_path:match("[^/]*$"):gsub("[%c<>]", "?"), source.workload_hash)
end

-- ---- all of it --------------------------------------------------------------------------------

-- The table at `path`, if it is of this arch; nil where there is none.
local function incumbent_of(path, arch, is_required)
  if not is_required and not file.exists(path) then return nil end
  local table_of, of_arch = tables.read(path)
  if not table_of then
    -- An unreadable table in --out will be replaced; an unreadable table of --against is an error.
    if is_required then fail.input("%s", of_arch) end
    return nil
  end
  if of_arch ~= arch then
    if is_required then fail.input("%s: is of %s, not %s", path, of_arch, arch) end
    return nil
  end
  return table_of
end

local function at_corner(text, where)
  if text == nil or text == "bin" then return false end
  if text ~= "corner" then fail.input("%s: %s; valid: bin, corner", where, text) end
  return true
end

-- The loss that a cell may have for fewer thresholds; nil: not given.
local function regret_of(value, where)
  if value == nil then return nil end
  local share = tonumber(value)
  if not share or share < 0 or share ~= share or share == math.huge then
    fail.input("%s: %s is no share of time; a number of at least 0, such as 0.01, is required", where,
      tostring(value))
  end
  return share
end

-- The incumbent: the table that is replaced, else the one beside the rows.
local function find_incumbent(source, folder)
  local replaced = folder .. "/table.csv"
  return file.exists(replaced) and replaced or source.data_dir .. "/table.csv"
end

-- Sets the workload for which the choices of a source are made: the file of --workload, else the one that the
-- spec names, else the text of it that the sweep recorded.
local function apply_workload(source, given)
  local of_spec = source.spec and spec.workload_path(source.spec, source.data_dir)
  source.workload_path = given or of_spec
  if not source.workload_path then return end
  local recorded = not given and not file.exists(of_spec) and source.recorded_workload
  local text = recorded or fail.unless(file.read(source.workload_path))
  source.workload = read_workload(source.workload_path, text)
  source.workload_hash = provenance.hash(text)
end

-- Sets the choices of the command line, else those of the spec, in `source`. `folder` has the
-- tables that are made or checked.
function settings.apply(source, args, folder)
  local choice = source.spec and source.spec.choice or {}
  local against = args.against ~= "none" and (args.against or find_incumbent(source, folder)) or nil
  source.same_bits_as, source.stable = settings.numerics(args.numerics or choice.numerics,
    args.numerics and "--numerics" or "the spec's numerics")
  source.corner = at_corner(args.choose or choice.at, args.choose and "--choose" or "the spec's choice at")
  source.regret = regret_of(args.regret or choice.regret, args.regret and "--regret" or "the spec's regret")
  apply_workload(source, args.workload)
  source.stays = against and incumbent_of(against, source.table_arch, args.against ~= nil)
end

return settings
