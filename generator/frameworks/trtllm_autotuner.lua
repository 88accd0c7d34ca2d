-- The cache of TensorRT-LLM's AutoTuner for its allreduce (TLLM_AUTOTUNER_CACHE_PATH), one file for each TP
-- size: TensorRT-LLM reads the part of its rank, and measures the shapes that the file lacks.
--
-- It looks up the number of ranks, the operation, the hidden size as it is and the largest power of two up to
-- the token count, and the shapes of all other inputs; never the data type. It does not check for which
-- version and GPU the file is, but `gentables check` does (`marks` in formats/list.lua).
--
-- trtllm_autotuner.text(view, tp_table): the file of a view (of formats.model) and one of its tables.
-- trtllm_autotuner.names(strategy), .lacks(source), .gaps(source): see formats/list.lua.
local facts = require("frameworks.reader_facts").trtllm_autotuner
local json = require "codec.json"
local lists = require "lists.lists"
local sequences = require "base.sequences"

local trtllm_autotuner = {}

-- Whether the AutoTuner can choose the strategy of this row.
function trtllm_autotuner.names(strategy) return lists.contains(facts.tactics, strategy.trtllm) end

-- The name of the GPU of a source's rows, as CUDA has it; nil: unknown.
local function device_of(source)
  local name = sequences.first(source.files, function(entry)
    return sequences.first(entry.provenance and entry.provenance.devices or {}, function(device)
      return device.name
    end)
  end)
  return name and (name:gsub("_", " "))
end

function trtllm_autotuner.lacks(source)
  if device_of(source) then return nil end
  return "no provenance of rows names the GPU, which the file must name; rows of gentables sweep have it"
end

-- ---- entries ----------------------------------------------------------------------------------

local function is_power_of_two(number) return number & number - 1 == 0 end

-- A tuple of Python: of a shape, or of tuples as text.
local function tuple(values)
  return "(" .. table.concat(values, ", ") .. (#values == 1 and "," or "") .. ")"
end

-- The key of an entry. The first size of the residual follows from the input's, and stands as -1.
local function key_of(tp, fusion, num_tokens, hidden_size)
  local absent, is_fused = tuple { 0 }, fusion.has_norm
  local shapes = { tuple { num_tokens, hidden_size }, is_fused and tuple { -1, hidden_size } or absent,
    is_fused and tuple { hidden_size } or absent, absent, absent, tuple { facts.pointers(tp) } }
  return ("('%s', '%s', '(%d, %d)', %s)"):format(facts.op, facts.runner, tp, fusion.number, tuple(shapes))
end

-- Calls each(fusion of facts, hidden size, token count, strategy or false, cell) for the cells of a table.
local function each_cell(canonical, tp_table, each)
  for f, of in ipairs(tp_table.fusions) do
    local fusion = facts.fusions[of.name]
    for h, hidden_size in ipairs(fusion and tp_table.hidden_sizes or {}) do
      for t, num_tokens in ipairs(tp_table.num_tokens) do
        each(fusion, hidden_size, num_tokens, of.rows[h][t], canonical:cell(tp_table.block, f, h, t))
      end
    end
  end
end

local function is_too_large(strategy, bytes)
  return bytes > facts.workspace_bytes and lists.contains(facts.in_workspace, strategy.trtllm)
end

-- The entries of a table, { key, tactic, time in ms }, and its gaps: { name of the fusion, hidden size, token
-- count, the choice, what TensorRT-LLM does: a strategy, or "measures" }.
local function entries_of(view, tp_table)
  local entries, gaps, below = {}, {}, {}
  local bytes = lists.find("dtypes", view.axes.dtype).bytes
  each_cell(view.canonical, tp_table, function(fusion, hidden_size, num_tokens, strategy, cell)
    if not strategy then return end
    local row = fusion.name .. " " .. hidden_size
    if not is_power_of_two(num_tokens) then
      local power = 1 << math.floor(math.log(num_tokens, 2) + 1e-9)
      local answered = below[row] and below[row].num_tokens == power and below[row].name or "measures"
      if answered ~= strategy.name then
        gaps[#gaps + 1] = { fusion.name, hidden_size, num_tokens, strategy.name, answered }
      end
    elseif is_too_large(strategy, num_tokens * hidden_size * bytes) then
      gaps[#gaps + 1] = { fusion.name, hidden_size, num_tokens, strategy.name, "measures" }
    else
      below[row] = { num_tokens = num_tokens, name = strategy.name }
      entries[#entries + 1] = { key_of(tp_table.tp, fusion, num_tokens, hidden_size), strategy.trtllm,
        cell.time_us / 1000 }
    end
  end)
  return entries, gaps
end

-- ---- the file ---------------------------------------------------------------------------------

local function rank_text(rank, lines, is_last)
  return ('  "rank_%d": {\n    %s\n  }%s'):format(rank, table.concat(lines, ",\n    "), is_last and "" or ",")
end

-- The text of the file of one table.
function trtllm_autotuner.text(view, tp_table)
  local entries, gaps = entries_of(view, tp_table)
  local sm = math.tointeger(view.source.arch:match("^sm(%d+)$"))
  local lines = sequences.map(entries, function(entry)
    return ('"%s": {"runner_id": 0, "tactic": "%d", "min_time": %.7g}'):format(table.unpack(entry))
  end)
  local text = { "{",
    ('  "metadata": {"lib_version": "%s",\n    "creation_timestamp": 0.0,\n    "device_name": %s,'):format(
      facts.read_as, json.compact(device_of(view.source))),
    ('    "device_capability": [%d, %d]},'):format(sm // 10, sm % 10),
    ('  "gentables": {"format": "TensorRT-LLM AutoTuner", "version": 1, "dtype": "%s",'):format(
      view.axes.dtype),
    '    "gaps": [' .. table.concat(sequences.map(gaps, function(gap)
      return "\n      " .. json.compact(json.array(gap))
    end), ",") .. "]}," }
  for rank = 0, tp_table.tp - 1 do
    text[#text + 1] = rank_text(rank, lines, rank == tp_table.tp - 1)
  end
  return table.concat(text, "\n") .. "\n}\n"
end

-- What the cache cannot express, as lines.
function trtllm_autotuner.gaps()
  return {
    "data types, eager calls beside graphs, several nodes: its keys have none; hidden sizes that were not " ..
      "measured, and fusions with a quantiser: TensorRT-LLM measures them itself",
    "token counts between powers of two: the power of two below counts; the key gaps of the file lists " ..
      "the cells with another choice",
    "ONESHOT and TWOSHOT above the workspace of 64 MiB: TensorRT-LLM measures the others",
    "versions with other keys (from pull request 16902 on the key has the data type): such a file is ignored",
  }
end

return trtllm_autotuner
