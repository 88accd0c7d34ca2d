-- Converts rules over ranges of bytes to the cells of a table. Of the rules that match a size the first
-- counts; each size at which another rule begins to count is a cell. A table's reader uses the cell of the
-- largest size up to its own.
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local ranges = {}

-- The bounds at which another rule may begin to count, ascending; the first is 0.
local function starts_of(rules)
  local starts = { [0] = true }
  for _, rule in ipairs(rules) do
    starts[rule.from], starts[rule.to < math.maxinteger and rule.to + 1 or 0] = true, true
  end
  return sorted_keys(starts)
end

local function first_match(rules, bytes)
  return sequences.find(rules, function(rule) return rule.from <= bytes and bytes <= rule.to end)
end

-- rules: { { from =, to = (bytes, inclusive), strategy =, line = }... }. Returns the cells of `world_size`
-- ranks on `nodes` nodes (nil: one); without --hidden-size a message is one token. A range without a whole
-- message has no cell; a range without a rule is unmeasured.
function ranges.cells(source, rules, world_size, nodes)
  local dtype = source:dtype("bfloat16")
  local message = source.bytes_of(dtype) * (source.options.hidden_size or 1)
  local cells, starts, before = {}, starts_of(rules), {}
  for i, start in ipairs(starts) do
    local count = math.max(1, start // message + (start % message > 0 and 1 or 0))
    local size = count * message
    local rule = first_match(rules, size)
    local strategy = rule and rule.strategy or false
    local holds = starts[i + 1] == nil or size < starts[i + 1]
    if holds and strategy ~= before.strategy then
      local num_tokens, hidden_size = source:shape(rule and rule.line, size // source.bytes_of(dtype))
      before = source.record { world_size = world_size, nodes = nodes, dtype = dtype, num_tokens = num_tokens,
        hidden_size = hidden_size, strategy = strategy }
      cells[#cells + 1] = before
    end
  end
  return cells
end

return ranges
