-- The kernels that thresholds.json calls custom, as vLLM does, and the sizes that one limit leaves out.
local by_bytes = require "sizes.by_bytes"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local custom_kernels = {}

local MOST_LINES = 4 -- of one number of ranks

-- The strategies that are no library's: on one node ONESHOT and TWOSHOT.
local CUSTOM = { ONESHOT = true, TWOSHOT = true, TWOSHOT_DIVIDED = true, TWOLEVEL = true,
  TWOLEVEL_SHARDED = true, TWOLEVEL_NUMA = true }

-- Whether a strategy (a row of lists.strategies) is such a kernel.
function custom_kernels.is_one(strategy) return CUSTOM[strategy.name] == true end

-- The segments of a table in which such a kernel is the best again after another strategy.
local function later_ones(tp_table)
  local has_ended = false
  return sequences.filter(tp_table.segments, function(segment)
    local is_one = custom_kernels.is_one(segment.strategy)
    has_ended = has_ended or not is_one
    return is_one and has_ended
  end)
end

-- The ranges of a source's thresholds.json in which such a kernel is the best again, above custom_max_bytes,
-- as lines; of many the first ones.
function custom_kernels.gaps(source)
  local lines = {}
  for _, tp_table in ipairs(by_bytes.tp_tables(source, function() return true end)) do
    local later = later_ones(tp_table)
    for i = 1, math.min(#later, MOST_LINES) do
      local words = "TP %d: from %s on %s is the best again, above custom_max_bytes; only rules has it"
      lines[#lines + 1] = words:format(tp_table.tp, quantities.bytes(later[i].first), later[i].strategy.name)
    end
    if #later > MOST_LINES then
      lines[#lines + 1] = ("TP %d: and so %d times more"):format(tp_table.tp, #later - MOST_LINES)
    end
  end
  return lines
end

return custom_kernels
