-- The sheet call_stacks, on request (options.stacks): GPU time by op, with the op's entry point and the stack
-- of Python functions that called it, if the trace has them.
local grouping = require "trace.ops.grouping"
local ordering = require "base.ordering"

local SEPARATOR = " > "

-- A frame without the address in its name, which differs from call to call.
local function name_of(frame) return (frame:gsub(" at 0x%x+", "")) end

-- The innermost frame with a pattern; nil: there is none.
local function innermost(frames, matches)
  for i = #frames, 1, -1 do
    if matches(frames[i]) then return frames[i] end
  end
end

local function is_module(frame) return frame:find("^nn%.Module: ") ~= nil end

-- Whether a frame is of a file, and not one of PyTorch's own.
local function is_call_site(frame)
  return frame:find("%(%d+%): ") ~= nil and not frame:find("^torch/") and not frame:find("/torch/")
end

-- The rows of one op, entry point and stack, apart from addresses, as one.
local function joined(rows)
  local groups = ordering.groups(rows, function(row)
    for i, frame in ipairs(row.frames) do row.frames[i] = name_of(frame) end
    row.stack = table.concat(row.frames, SEPARATOR)
    return table.concat({ row.op, row.entry, row.stack }, "\0")
  end)
  local out = {}
  for i, group in ipairs(groups) do
    out[i] = group[1]
    for k = 2, #group do
      out[i].count, out[i].sum = out[i].count + group[k].count, out[i].sum + group[k].sum
    end
  end
  return ordering.falling(out, function(row) return row.sum end)
end

local function sheet_of(rows)
  local sheet, total = { name = "call_stacks", rows = {}, columns = { "op", "entry point", "module",
    "call site", "GPU events", "GPU time (µs)", "Percent of GPU time (%)", "stack" } }, 0.0
  for _, row in ipairs(rows) do total = total + row.sum end
  for i, row in ipairs(rows) do
    local module = innermost(row.frames, is_module)
    sheet.rows[i] = { row.op, row.entry, module and module:match("^nn%.Module: (.*)$"),
      innermost(row.frames, is_call_site), row.count, row.sum, grouping.percent(row.sum, total),
      row.stack ~= "" and row.stack or nil }
  end
  return sheet
end

return {
  make = function(rank, options, notes)
    if not options.stacks then return {} end
    local rows = joined(rank.analysis:stacks())
    local has_frames = false
    for _, row in ipairs(rows) do has_frames = has_frames or #row.frames > 0 end
    if not has_frames then
      notes[#notes + 1] = { "without call stacks", 0, nil,
        "the trace has no functions of Python: torch.profiler records them with with_stack=True" }
    end
    return { sheet_of(rows) }
  end,
}
