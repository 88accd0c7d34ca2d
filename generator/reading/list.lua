-- The readers of other programs' files, one row each; `gentables import` takes the first one that
-- recognises a file. The verb's help and the table in docs/import.md are made from this list.
--
-- How to add a reader: a row here, and a file generator/readers/FILE.lua that returns function(source) ->
-- result. A source is described in reading/source.lua; readers/osu.lua is a short example. The result is {
-- rows = { record... }, no_time = { record... }, facts = {} } or { tables = { { arch =, cells = { record... }
-- }... } }; a record has the keys of lists/columns.lua, which source.record completes, and `line`. A reader
-- raises on wrong input, with file and line (source:fail), and makes no guesses.
--   name   for --from, help and provenance
--   file   in generator/readers, without .lua
--   gives  "rows" or "table"
--   is     function(head) -> whether a file that begins with these bytes is of this kind
--   help   what it reads, of which versions, with which options
local sequences = require "base.sequences"
local readers = {}

-- The length of the beginning of a file that recognisers get.
readers.HEAD_BYTES = 1 << 16

local function first_line(head)
  return (head:match("^\239?\187?\191?([^\r\n]*)"))
end

-- Whether a line of the text, from its beginning on, matches.
local function has_line(head, pattern) return ("\n" .. head):find("\n" .. pattern) ~= nil end

-- The names in the first line, spaces and quotes taken off: { name = true }.
local function header(head)
  local names = {}
  for name in first_line(head):gsub('"', ""):gmatch("[^,]+") do names[name:match("^%s*(.-)%s*$")] = true end
  return names
end

local function is_json(head) return head:find("^%s*{") ~= nil end

-- The first line that is neither empty nor a comment.
local function first_words(head)
  for line in head:gmatch("[^\r\n]+") do
    local words = line:gsub("#.*", ""):match("^%s*(.-)%s*$")
    if words ~= "" then return words end
  end
  return ""
end

readers.list = {
  { name = "trtllm-header", file = "trtllm_header", gives = "table",
    is = function(head)
      return head:find("AllReduceBestStrategyTable", 1, true) ~= nil
        or head:find("HeuristicThresholdLP", 1, true) ~= nil
    end,
    help = "tables in TensorRT-LLM's customAllReduceUtils.h of any layout and SMs, or as its generator " ..
      "prints them; numbers of an older enum with --era oneshot1" },
  { name = "trtllm-printed", file = "trtllm_printed", gives = "rows",
    is = function(head) return has_line(head, "%s*world_size,%s*dtype,%s*message size,") end,
    help = "output of TensorRT-LLM's first all_reduce.py (generation A); needs --calls" },
  { name = "nccl-optimizer", file = "nccl_optimizer", gives = "rows",
    is = function(head)
      local names = header(head)
      return names.collective ~= nil and names.size_bytes ~= nil and names.latency_us ~= nil
    end,
    help = "measurements for optimize_config.py of NCCL's example tuner: rows such as NCCL_RING_LL128_8CH" },
  { name = "benchmark-csv", file = "benchmark_csv", gives = "rows",
    is = function(head) return header(head).world_size ~= nil end,
    help = "TensorRT-LLM's benchmark CSV, generations B to D and --benchmark mode; gentables' own" },
  { name = "bench-rows", file = "bench_rows", gives = "rows",
    is = function(head) return has_line(head, "hello [^\n]*protocol=%d") end,
    help = "a transcript of gentables-bench --serve, as verify.sh writes it" },
  { name = "nccl-tests-json", file = "nccl_tests_json", gives = "rows",
    is = function(head)
      return is_json(head) and head:find('"nccl_version"', 1, true) ~= nil
    end,
    help = "JSON of nccl-tests (-J), versions 1 to 4, as rows of NCCL (or --strategy)" },
  { name = "nccl-tests", file = "nccl_tests", gives = "rows",
    is = function(head) return has_line(head, "#%s+size%s+count%s+type%s") end,
    help = "the table that nccl-tests prints, 2.0 to 2.17, as rows of NCCL (or --strategy); a wrong sum " ..
      "has no time" },
  { name = "osu", file = "osu", gives = "rows",
    is = function(head) return has_line(head, "#?%s*OSU MPI[^\n]* Test") end,
    help = "output of osu_allreduce of the OSU micro-benchmarks, 3 to 7, as rows of MPI (or --strategy); " ..
      "needs --tp" },
  { name = "flashinfer", file = "flashinfer", gives = "rows",
    is = function(head)
      return head:find("FlashInfer Fused Collective Operations Benchmark", 1, true) ~= nil
        or has_line(head, "Results: num_tokens=%d") or has_line(head, "Results: seq_len=%d")
    end,
    help = "vLLM's and SGLang's benchmark of FlashInfer's fused allreduce " ..
      "(benchmark_fused_collective.py), printed (needs --tp) or Markdown, as rows of ONESHOT and TWOSHOT" },
  { name = "ompi-json", file = "ompi_json", gives = "table",
    is = function(head) return is_json(head) and head:find('"rule_file_version"', 1, true) ~= nil end,
    help = "rules of Open MPI's coll/tuned as JSON (6.0)" },
  { name = "ompi-rules", file = "ompi_rules", gives = "table",
    is = function(head)
      local words = first_words(head)
      return words:find("^%d+$") ~= nil or words:find("^rule%-file%-version%-") ~= nil
    end,
    help = "rules of Open MPI's coll/tuned, classic and version 2" },
  { name = "nccl-tuner", file = "nccl_tuner", gives = "table",
    is = function(head)
      return first_words(head):find("^[%a_]+%s*,%s*%-?%d+%s*,%s*%-?%d+%s*,%s*[%w_]+%s*,") ~= nil
    end,
    help = "the file of NCCL's example tuner (NCCL_TUNER_CONFIG_FILE), 8 to 10 fields; needs --arch" },
}

function readers.find(name)
  return sequences.named(readers.list, name)
end

-- The reader for a file that begins with these bytes, or nil.
function readers.of(head)
  return sequences.find(readers.list, function(reader) return reader.is(head) end)
end

function readers.names()
  return sequences.field(readers.list, "name")
end

return readers
