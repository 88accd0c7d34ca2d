-- A file that is read for its rows or table, and what all readers share: its lines, errors with their line,
-- and the records of its rows. A reader is function(source).
--
--   source.path, source.text   the file; its text has neither byte order mark nor CR at line ends
--   source.options             of the command line: tp, dtype, hidden_size, strategy, arch, era, calls,
--                              nodes, in_place; nil where they are not given
local fail = require "base.fail"
local core_rows = require "core.rows"
local lists = require "lists.lists"
local numbers = require "base.numbers"

local source = {}
source.__index = source

source.SHAPE_MOST = core_rows.SHAPE_MOST

function source.new(path, text, options)
  text = text:gsub("^\239\187\191", ""):gsub("\r\n", "\n")
  local self = setmetatable({ path = path, text = text, options = options, left_out = {} }, source)
  if text:find("\0", 1, true) then self:fail(nil, "is not text; UTF-8 is required") end
  return self
end

-- Raises. `line` is a line's number; nil: the file as a whole.
function source:fail(line, message, ...)
  if select("#", ...) > 0 then message = message:format(...) end
  fail.input("%s%s: %s", self.path, line and ":" .. line or "", message)
end

-- for number, line in source:lines() do
-- Raises for a last line without a line end that ends in a number of few digits: more of them may be cut off.
-- With `may_be_cut` the caller finds that.
function source:lines(may_be_cut)
  local number, at = 0, 1
  return function()
    if at > #self.text then return nil end
    local stop = self.text:find("\n", at, true)
    local line = self.text:sub(at, (stop or #self.text + 1) - 1)
    number, at = number + 1, (stop or #self.text) + 1
    local number_at_end = not stop and not may_be_cut and line:find("%d$") and line:match("[^%s,]+$")
    if number_at_end and not numbers.is_precise(number_at_end) then
      self:fail(number, "the last line has no line end, so its last number may be cut off; "
        .. "complete or end it")
    end
    return number, line
  end
end

-- The text as a message shows it.
function source.shown(text)
  return '"' .. fail.cut(tostring(text):gsub("%c", "?"), 60) .. '"'
end

-- The fields of a line of plain CSV, spaces taken off.
function source.fields(line)
  local fields = {}
  for field in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = field:match("^%s*(.-)%s*$") end
  return fields
end

function source.words(line)
  local words = {}
  for word in line:gmatch("%S+") do words[#words + 1] = word end
  return words
end

-- A whole number of [least, most].
function source:whole(line, what, text, least, most)
  local number = numbers.whole(text, least, most or math.maxinteger)
  if not number then
    self:fail(line, "%s is %s; a whole number%s is required", what, self.shown(text),
      most and (" of %d to %d"):format(least or 1, most) or (" from %d on"):format(least or 1))
  end
  return number
end

-- A time above 0, in any unit, within the limits of rows.
function source:time(line, what, text)
  local number = numbers.finite(text)
  if not number or number <= 0 then
    self:fail(line, "%s is %s; a number above 0 is required", what, self.shown(text))
  elseif number < core_rows.TIME_LEAST_US or number > core_rows.TIME_MOST_US then
    self:fail(line, "%s is %s; a measured time is from %g to %g", what, self.shown(text),
      core_rows.TIME_LEAST_US, core_rows.TIME_MOST_US)
  end
  return number
end

-- The name in lists[kind] that `text` means; `what` is the column's name.
function source:name(line, kind, what, text)
  local row = lists.find(kind, text)
  if not row then
    local names = table.concat(lists.names(kind), ", ")
    if #names > 200 then names = names:sub(1, 200) .. "..." end
    self:fail(line, "unknown %s %s; valid: %s", what, self.shown(text), names)
  end
  return row.name
end

-- The strategy of an algorithm, a protocol and a number of channels (-1: chosen by NCCL) of NCCL's tuner.
-- `shown`: how a message shows the two names.
function source:nccl_strategy(line, algorithm, protocol, channels, shown)
  local row = lists.nccl_strategy(algorithm, protocol, channels ~= -1 and channels or nil)
  if not row then
    self:fail(line, "no strategy is %s, %s, %d channels; the list of them is nccl in lists/lists.lua",
      shown(algorithm), shown(protocol), channels)
  end
  return row.name
end

-- The data type of the command line, or `default`.
function source:dtype(default)
  local name = self.options.dtype or default
  return name and self:name(nil, "dtypes", "--dtype", name)
end

function source.bytes_of(dtype) return lists.find("dtypes", dtype).bytes end

-- The number of ranks, from the file or else from --tp. One number.
function source:world_size(found, line)
  local given = self.options.tp
  if found and given and not lists.contains(given, found) then
    self:fail(line, "is of %d ranks, and --tp is %s", found, table.concat(given, ","))
  end
  if found then return found end
  if not given or #given ~= 1 then self:fail(line, "the file has no number of ranks; give it with --tp N") end
  return given[1]
end

-- The fields of a record for `ranks` ranks on `nodes` nodes: world_size, and for several nodes nodes and
-- ranks_per_node.
function source:placement(line, ranks, nodes)
  if ranks % nodes ~= 0 then
    self:fail(line, "%d ranks on %d nodes; the same number of ranks on each node is required", ranks, nodes)
  end
  if nodes == 1 then return { world_size = ranks } end
  return { world_size = ranks, nodes = nodes, ranks_per_node = ranks // nodes }
end

-- The shape of a message of which only the number of elements is known: tokens of --hidden-size elements, or
-- one token.
function source:shape(line, elements)
  local hidden_size = self.options.hidden_size
  if hidden_size and elements % hidden_size ~= 0 then
    self:fail(line, "%d elements are no whole tokens of --hidden-size %d", elements, hidden_size)
  end
  local num_tokens = hidden_size and elements // hidden_size or 1
  hidden_size = hidden_size or elements
  if num_tokens > source.SHAPE_MOST or hidden_size > source.SHAPE_MOST then
    self:fail(line, "%d elements are too many for a row; --hidden-size N makes tokens of them", elements)
  end
  return num_tokens, hidden_size
end

-- The shape of a row of a message of `size` bytes: tokens of --hidden-size elements. Without that option nil:
-- the row has a size only; or false, with a note, if the message is too large for such a row.
function source:shape_of_row(line, size, elements)
  if self.options.hidden_size then return self:shape(line, elements) end
  if size < core_rows.HIDDEN_SIZE_NONE then return nil end
  self:leave_out("of 4 GiB or more; --hidden-size N makes tokens of them")
  return false
end

-- A record, its gaps filled in with what other tools leave open.
function source.record(fields)
  fields.op = fields.op or "allreduce"
  fields.mode = fields.mode or "unknown"
  fields.fusion = fields.fusion or "NONE"
  fields.placement = fields.placement or "unknown"
  return fields
end

-- Notes that rows were left out, for the reason.
function source:leave_out(reason) self.left_out[reason] = (self.left_out[reason] or 0) + 1 end

return source
