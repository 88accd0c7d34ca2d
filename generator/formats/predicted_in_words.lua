-- The predictions of a source as lines of text: for reports, and for the verbs that make tables. With them,
-- how much the choices would lose if the largest measured number of nodes had been predicted, too.
local fail = require "base.fail"
local formats = require "base.lazy" "formats.list"
local held_out = require "base.lazy" "predict.held_out"
local predictions = require "base.lazy" "predict.predictions"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local statistics = require "base.statistics"

local predicted_in_words = {}

-- The median factor between a time of a block and the ends of its interval; nil without times.
local function typical_factor(times, block)
  local factors = {}
  for _, time in ipairs(times) do
    if time.nodes == block.nodes and time.world_size == block.world_size and time.dtype == block.dtype
      and time.mode == block.mode and time.fusion == block.fusion then
      factors[#factors + 1] = math.sqrt(time.high_us / time.low_us)
    end
  end
  return statistics.median(factors)
end

local function block_in_words(found, block, library)
  local factor = typical_factor(found.times, block)
  local words = ("%s %s %s: %d of %s predicted from fewer nodes"):format(
    rank_placement.words(block.world_size, block.nodes), block.dtype, block.fusion,
    block.shapes - block.without, quantities.counted(block.shapes, "shape"))
  if factor then words = words .. ("; 95 %% intervals end at %.2f times the time (median)"):format(factor) end
  if block.without > 0 then
    words = words .. ("; the others have no choice, because the times of %s follow no law or are too few")
      :format(library)
  end
  return words .. "."
end

-- Adds a line for each file of a source that has measured choices only.
local function add_measured_only(lines, source)
  for _, format in ipairs(formats.list) do
    if format.measured_only and formats.is_for(format, source.arch_row)
      and not (format.lacks and format.lacks(source)) then
      lines[#lines + 1] = ("%s has no predicted choices: %s."):format(format.file, format.measured_only)
    end
  end
end

-- The lines; {} if the spec of the source predicts nothing.
function predicted_in_words.lines(source)
  local found = predictions.of_source(source)
  if not found then return {} end
  local lines = {}
  for _, block in ipairs(found.blocks) do
    lines[#lines + 1] = block_in_words(found, block, source.arch_row.fallback)
  end
  for _, reason in ipairs(found.refused) do lines[#lines + 1] = "Not predicted: " .. reason .. "." end
  for _, judgement in ipairs(held_out.of_source(source)) do
    lines[#lines + 1] = held_out.words(judgement):gsub("^h", "H") .. "."
  end
  if #found.times > 0 then add_measured_only(lines, source) end
  return lines
end

-- Prints them as notes.
function predicted_in_words.print(sources)
  for _, source in ipairs(sources) do
    for _, line in ipairs(predicted_in_words.lines(source)) do
      fail.note("%s: %s", source.data_dir, (line:gsub("%.$", "")))
    end
    predicted_in_words.print(source.parts or {})
  end
end

return predicted_in_words
