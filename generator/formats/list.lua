-- The list of artifacts that are made from rows, a row for each. verbs/generate.lua and verbs/check.lua make
-- all of them in one loop.
--
-- How to add a format: a template below templates/ (codec/template.lua describes its language, model.lua its
-- input; short examples: tables/generated_lookup_table.cpp.tmpl, and tables/nccl_tuner.csv.tmpl by message
-- size) and a row here:
--   name      its name in --formats
--   file      its name in the folder of tables
--   template  the template; or text = function(model) -> text where no template is needed
--   reader    the programs that read it, for help and the report
--   archs     function(row of lists.archs) -> whether such an arch has it; absent: every arch has
--   why_not   the message if --formats names it and the arch has none
--   lookup    how its reader finds the cell of a shape: "log2" (the power of two that is not above it),
--             "floor" (the size that is not above it), or, if absent, the nearest size
--   plane     it has no axis for dtype, op and mode: it holds those of the spec's `table`
--   optional  of a `plane`: nothing is printed if the rows do not suffice
--   by_bytes  beside that plane it has the choices that were measured by bytes alone, of every op
--   scope     "all": made of all SM versions of a folder (--arch all), not of one arch
--   with      the name of another format with files to which these refer: both are written
--   per_tp    one file for each TP size: `file` has {tp}, the template sees `tp_table`; any `file` may have
--             {arch}
--   per_nodes one file for each number of nodes, because its reader has no such axis: `file` is that of one
--             node, others have the number of nodes in their names (formats.file_on). The text for the report
--             that says which of them a job needs
--   one_node  it has no place for choices of several nodes
--   view      function(source, format, nodes) -> the template's model, in place of model.for_format, with
--             tp_tables; `nodes` (of per_nodes): those of the file, by default 1
--   lacks     function(source) -> the missing measurements, or nil; with any the format is left out
--   names     function(row of lists.strategies) -> whether it can name the strategy; absent: all. Only these
--             compete
--   elsewhere what its reader does with unmeasured cells; {fallback} is model.fallback's
--   installs  a file for an MPI library, which generate --install-prefix also writes to another folder
--   mute      it has no room for the name of its numerics class
--   measured_only  why it has no predicted choices, as text
--   shown     what was done to show that the reader obeys the file: { test = its name, what = text, real =
--             a further test, which runs the reader itself }; nil: people read it
--   marks     { name, pattern }...: what check reports first if it differs in a file; see file_fault.lua
--   left_out  function(model) -> list of further parts that it leaves out, for the report (required
--             with `view` of an arch, and called without a model)
--   gaps      function(source) -> lines: what its reader cannot express, for the report
local lists = require "lists.lists"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local custom_kernels = require "frameworks.custom_kernels"
local sequences = require "base.sequences"

local formats = {}

-- The values of `list` that are not in `known`.
local function others(list, known)
  return sequences.filter(list, function(value) return not lists.contains(known, value) end)
end

-- Whether the format's reader ignores numerics classes at unmeasured cells.
function formats.may_leave_bits(format)
  return format.names ~= nil or format.elsewhere ~= nil and not format.elsewhere:find("{fallback}", 1, true)
end

local function trtllm_leaves_out(model)
  local grid, lines = lists.trtllm_grid, {}
  for _, tp_table in ipairs(model.tp_tables) do
    if not lists.contains(grid.tp, tp_table.tp) then
      lines[#lines + 1] = ("TP %d: its table has TP %s"):format(tp_table.tp, table.concat(grid.tp, ", "))
    else
      for _, axis in ipairs { { "hidden_sizes", "hidden size" }, { "num_tokens", "token count" } } do
        local off = others(tp_table[axis[1]], grid[axis[1]])
        if #off > 0 then
          local words = "TP %d: %s not on its grid; what its lookup sends to a cell counts there"
          lines[#lines + 1] = words:format(tp_table.tp, quantities.counted(#off, axis[2]))
        end
      end
    end
  end
  for _, tp in ipairs(grid.tp) do
    if not model.tp_table_of[tp] then
      lines[#lines + 1] = ("TP %d was not measured: every cell reads 8, NCCL_SYMMETRIC"):format(tp)
    end
  end
  return lines
end

-- The name of a format's file for a number of nodes: ompi_rules.conf, ompi_rules.nodes2.conf.
function formats.file_on(format, nodes)
  if not rank_placement.spans(nodes) then return format.file end
  return (format.file:gsub("%.(%w+)$", (".nodes%d.%%1"):format(nodes)))
end

-- The tables by message size of several nodes: { { nodes, tp_tables }... }, ascending.
local function on_nodes(source, format, may_win)
  local counts = require("formats.model").node_counts(source, format.measured_only)
  return sequences.map(counts, function(nodes)
    local tp_tables = nodes > 1 and require("sizes.by_bytes").tp_tables(source, may_win, nil, nodes) or {}
    return #tp_tables > 0 and { nodes = nodes, tp_tables = tp_tables } or nil
  end)
end

-- The model of a format by message size, of the strategies that it can name.
local function by_size(may_win, more)
  return function(source, format)
    local by_bytes = require "sizes.by_bytes"
    local view = { tp_tables = by_bytes.tp_tables(source, may_win),
      on_nodes = on_nodes(source, format, may_win),
      numerics = require("choose.settings").numerics_word(source),
      fallback = require("formats.model").fallback(source) }
    for key, value in pairs(more or {}) do view[key] = value end
    return view
  end
end

-- A format's `lacks` for formats that need rows of such a strategy: the missing rows and the way out, as
-- text.
local function lacks_rows(is_such, words)
  return function(source)
    for name in pairs(require("formats.model").measured(source)) do
      if is_such(lists.find("strategies", name)) then return nil end
    end
    return words
  end
end

-- A format's `lacks` for formats that need shapes, if all rows are by bytes.
local function lacks_shapes(what_for)
  return function(source)
    if not require("formats.model").is_by_bytes(source) then return nil end
    return ("no row has tokens and a hidden size, %s; a sweep's have"):format(what_for)
  end
end

-- A format's `lacks` for TensorRT-LLM's table.
local function lacks_trtllm(source)
  if require("formats.model").node_counts(source)[1] ~= 1 then
    return "no row is of one node, and its table has no other"
  end
  return lacks_shapes("which its lookup needs")(source)
end

-- The parts that a format by message size leaves out.
local function all_but_plain_sums() return { "every fusion but NONE: it goes by bytes alone" } end

local function is_host(arch) return arch.backend == "host" end
local function is_gpu(arch) return arch.backend == "cuda" and not arch.rccl end
local function is_amd(arch) return arch.rccl == true end
local function has_channels(strategy) return strategy.nccl ~= nil and strategy.nccl.channels ~= nil end
local function is_ucc(strategy) return strategy.ucc_algorithm ~= nil end
local function is_mpich(strategy) return strategy.mpich_algorithm ~= nil end

local function ompi_rules(source, format, nodes)
  return { tp_tables = require("formats.ompi").tp_tables(source, nodes), nodes = nodes or 1,
    node_counts = require("formats.model").node_counts(source, format.measured_only) }
end

local function ompi_json_rules(source, format, nodes)
  local view = ompi_rules(source, format, nodes)
  view.communicators = require("formats.ompi").distributed(source, view.nodes)
  return view
end

local function ompi_han(source, format, nodes)
  local view = require("formats.ompi_han").view(source, nodes)
  view.file, view.rules_file = formats.file_on(format, nodes), formats.file_on(formats.find("ompi"), nodes)
  return view
end

-- A format's `lacks` for a format of Open MPI's rules (a key of ompi.versions).
local function lacks_ompi_rules(format)
  return function(source)
    local ompi = require "formats.ompi"
    return ompi.lacks_rules(source) or ompi.unread(source, format)
  end
end

local OMPI_ELSEWHERE = "an unmeasured communicator size, and every other collective, gets Open MPI's " ..
  "built-in decision; beyond the measured sizes the outermost rule"
local OMPI_NODES = "its rules distinguish communicators by size only; a job on M nodes needs the file " ..
  "with nodesM in its name, and its communicators within a node get these rules too"
local OMPI_JSON_NODES = "its rules distinguish ranks on one node, one rank on each node, and all others; " ..
  "a job on M nodes with several ranks on each needs the file with nodesM in its name"
local OMPI_HAN_NODES = "its rules distinguish communicators by size only; a job on M nodes needs the file " ..
  "with nodesM in its name, and a job on one node none"
-- A row of a file for an MPI library, with the fields that all of these have.
local function of_mpi(row)
  row.installs = true
  row.archs, row.why_not, row.left_out = is_host, "MPI ranks are hosts", row.left_out or all_but_plain_sums
  return row
end

local function mpich_selection(source, format)
  return by_size(is_mpich, { tree = require("formats.mpich").view(source) })(source, format)
end

local lacks_channels = lacks_rows(has_channels, "no row of an algorithm, protocol and number of channels " ..
  "of NCCL's; measure NCCL_RING_LL128_16CH and others, or import the input of optimize_config.py")

-- A row of a file for NCCLX's tuner.
local function of_ncclx(row)
  row.reader = ("NCCLX of torchcomms, v2_29 and v2_30: NCCLX_TUNER_CONFIG_FILE%s"):format(row.build or "")
  row.shown = { test = "tuners_ncclx_obeys_its_rules",
    what = "read by a program that follows the rules of NCCLX" }
  row.elsewhere = "NCCLX's own decision for other numbers of ranks and other collectives; a size that is " ..
    "less than a byte for each rank above a border may get the choice below it"
  row.archs, row.why_not, row.left_out = is_gpu, "NCCLX runs on NVIDIA's GPUs", all_but_plain_sums
  row.measured_only, row.lacks = "there is no room for a mark", lacks_channels
  row.view = function(source, format)
    local view = by_size(has_channels)(source, format)
    view.rules = require("tuners.ncclx").rules(view)
    return view
  end
  return row
end

local function rccl_table(source, format)
  return by_size(has_channels, { own_rows = require("tuners.rccl").own_rows(source) })(source, format)
end

local lacks_mpich = lacks_rows(is_mpich, "no row measured under MPICH; build the bench with it " ..
  "(-DMPI_C_COMPILER=mpicc.mpich) and name MPICH_RECURSIVE_DOUBLING and others in the spec")

local AUTOTUNER_MARKS = {
  { name = "version", pattern = '"gentables": {[^\n]*"version": ()(%d+)' },
  { name = "lib_version", pattern = '"lib_version": "()([^"\n]*)"' },
  { name = "device_name", pattern = '"device_name": "()([^"\n]*)"' },
  { name = "device_capability", pattern = '"device_capability": ()(%[[^%]\n]*%])' },
}

-- The marks of a Python module of our own.
local MODULE_MARKS = {
  { name = "FORMAT", pattern = '\nFORMAT = "()([^"\n]*)"' },
  { name = "VERSION", pattern = "\nVERSION = ()(%d+)" },
  { name = "CAPABILITY", pattern = '\nCAPABILITY = "()([^"\n]*)"' },
}

-- A row of a file for a framework of GPUs, from a module of frameworks/.
local function of_framework(module, row)
  local function its(name)
    return function(...) return require("frameworks." .. module)[name](...) end
  end
  row.name = row.name or module
  row.archs, row.why_not = function(arch) return arch.sm end, "its reader runs on GPUs with real links"
  row.view, row.lacks, row.gaps = row.view or its "view", its "lacks", its "gaps"
  row.left_out = function() return {} end
  row.measured_only = "it is for ranks on one node"
  return row
end

-- Runs readers themselves, where these are installed.
local REAL = "formats_real_readers_obey"
local RUN_BY_OMPI = "Open MPI %s: every measured size and border, and which algorithm ran"
local NO_MARK = "there is no room for a mark"
local NEARER = "between two measured sizes the nearer one counts, as a ratio; beyond them the outermost; "

formats.list = {
  { name = "trtllm", file = "generated_lookup_table.cpp", template = "tables/generated_lookup_table.cpp.tmpl",
    reader = "TensorRT-LLM: the table in customAllReduceUtils.h",
    shown = { test = "fragment_equals_another_way",
      what = "the same bytes as from another program" },
    elsewhere = "the floor of log2 counts: TP 3 reads the row of TP 2, hidden size 2880 that of 2048, " ..
      "255 tokens that of 128; an unmeasured cell has 8, NCCL_SYMMETRIC; beyond the table NCCL_SYMMETRIC, " ..
      "in the newest versions NCCL; messages above the workspace always use NCCL",
    archs = function(arch) return arch.sm end,
    why_not = "TensorRT-LLM has tables for smXX only",
    plane = true,
    one_node = true,
    lookup = "log2",
    names = function(strategy) return strategy.trtllm ~= nil end,
    lacks = lacks_trtllm,
    left_out = trtllm_leaves_out,
    mute = true },
  { name = "trtllm-header", file = "customAllReduceUtils.h", template = "tables/customAllReduceUtils.h.tmpl",
    reader = "TensorRT-LLM: cpp/tensorrt_llm/common/customAllReduceUtils.h, whole",
    shown = { test = "formats_trtllm_header_answers_every_cell",
      what = "compiled with stand-ins of TensorRT-LLM's includes; every cell asked, and shapes outside" },
    scope = "all",
    why_not = "it is made of all smXX together: --arch all",
    lookup = "floor",
    names = function(strategy) return strategy.trtllm ~= nil end,
    view = function(...) return require("formats.trtllm").view(...) end },
  { name = "c", file = "allreduce_table.h", template = "tables/allreduce_table.h.tmpl",
    reader = "any C or C++ program",
    shown = { test = "header_answers_every_cell",
      what = "compiled as C and C++; every cell asked, and shapes outside" },
    elsewhere = NEARER .. "an unmeasured TP size, fusion or cell gets {fallback}; the choices of one TP " ..
      "size are not used for another",
    plane = true,
    by_bytes = true },
  { name = "thresholds", file = "thresholds.json", template = "tables/thresholds.json.tmpl",
    reader = "vLLM, SGLang, FlashInfer and the like: bytes per TP size, by python/gentables_thresholds.py",
    shown = { test = "formats_thresholds_split_inclusively",
      what = "read by its Python module at each measured size and each border" },
    elsewhere = NEARER .. "an unmeasured TP size gets {fallback}; plain sums count for every fusion",
    left_out = all_but_plain_sums, gaps = custom_kernels.gaps,
    view = by_size(function() return true end, { is_custom = custom_kernels.is_one }),
    lacks = lacks_rows(custom_kernels.is_one, "no row of ONESHOT or TWOSHOT, for which it has thresholds; " ..
      "measure them: gentables sweep, or TensorRT-LLM's all_reduce.py") },
  { name = "trtllm-autotuner", file = "trtllm_autotuner_tp{tp}.json", per_tp = true,
    text = function(view) return require("frameworks.trtllm_autotuner").text(view, view.tp_table) end,
    reader = "TensorRT-LLM's AutoTuner: a copy as TLLM_AUTOTUNER_CACHE_PATH, for one number of ranks each",
    shown = { test = "frameworks_trtllm_autotuner_finds_its_entries",
      what = "loaded as TensorRT-LLM does; every cell asked by its keys, and shapes outside" },
    elsewhere = "TensorRT-LLM measures in its warm-up; without it NCCL_SYMMETRIC",
    archs = function(arch) return arch.sm end,
    why_not = "TensorRT-LLM runs on GPUs with real links",
    plane = true,
    optional = true,
    one_node = true,
    names = function(strategy) return require("frameworks.trtllm_autotuner").names(strategy) end,
    lacks = function(source)
      return lacks_trtllm(source) or require("frameworks.trtllm_autotuner").lacks(source)
    end,
    gaps = function(source) return require("frameworks.trtllm_autotuner").gaps(source) end,
    marks = AUTOTUNER_MARKS,
    mute = true },
  of_framework("inductor_profile", { name = "pytorch", file = "inductor_profile.json",
    text = function(view) return require("frameworks.inductor_profile").text(view) end,
    reader = "PyTorch's Inductor: aten_distributed_optimizations.profile_guided_estimations_profile_path",
    shown = { test = "frameworks_inductor_estimates_measured_times", real = REAL,
      what = "read by Inductor of PyTorch 2.14.1, and by the rules of a newer one: every size, and sizes " ..
        "between and outside" },
    marks = { { name = "version", pattern = '"gentables": {[^\n]*"version": ()(%d+)' } },
    elsewhere = "PyTorch interpolates between measured sizes; other groups get its own formulas" }),
  of_framework("vllm", { file = "vllm_allreduce.py",
    template = "tables/vllm_allreduce.py.tmpl",
    reader = "vLLM: apply() as an entry point of vllm.general_plugins, or one limit by --compilation-config",
    shown = { test = "frameworks_vllm_obeys_its_limits",
      what = "loaded with stand-ins of vLLM's modules; every size and border asked by vLLM's rules" },
    marks = MODULE_MARKS,
    elsewhere = "kernels and numbers of ranks that were not measured keep vLLM's own limits; beyond the " ..
      "measured sizes NCCL" }),
  of_framework("sglang", { file = "sglang_allreduce.py",
    template = "tables/sglang_allreduce.py.tmpl",
    reader = "SGLang's custom all-reduce, version 2: over(globals()) at the end of its module, or apply()",
    shown = { test = "frameworks_sglang_obeys_its_limits",
      what = "loaded with stand-ins of SGLang's modules; every size and border asked by SGLang's rules" },
    marks = MODULE_MARKS,
    elsewhere = "an unmeasured number of ranks keeps SGLang's own limits; beyond the measured sizes NCCL" }),
  of_framework("flashinfer", { file = "flashinfer_oneshot.py",
    template = "tables/flashinfer_oneshot.py.tmpl",
    reader = "FlashInfer's allreduce_fusion: use_oneshot, or over(flashinfer.comm) for all calls",
    shown = { test = "frameworks_flashinfer_calls_have_the_choice",
      what = "loaded with a stand-in of flashinfer.comm; every size and border of each fusion asked" },
    marks = MODULE_MARKS,
    elsewhere = "an unmeasured fusion or number of ranks keeps FlashInfer's own rule; beyond the measured " ..
      "sizes the outermost choice" }),
  { name = "nccl", file = "nccl_tuner.csv", template = "tables/nccl_tuner.csv.tmpl",
    reader = "NCCL 2.30.3 and later, by its example tuner plugin: NCCL_TUNER_PLUGIN, NCCL_TUNER_CONFIG_FILE",
    shown = { test = "formats_nccl_tuner_is_read",
      what = "read by a program that follows the rules of the plugin" },
    elsewhere = "NCCL's example plugin gives one channel to every call without a line: other numbers of " ..
      "ranks, other collectives",
    archs = is_gpu, why_not = "NCCL runs on GPUs",
    left_out = all_but_plain_sums,
    view = by_size(has_channels),
    measured_only = "a file cannot leave a call to NCCL's own decision",
    lacks = lacks_channels },
  { name = "rccl", file = "rccl_tuner_{arch}.csv", template = "tables/rccl_tuner.csv.tmpl",
    reader = "RCCL since March 2026 (rocm-systems): share/rccl/tuner, or NCCL_TUNER_CONFIG_FILE",
    shown = { test = "tuners_rccl_obeys_its_table",
      what = "read by a program that follows the rules of RCCL" },
    elsewhere = "AMD's own rows, which follow ours; without one RCCL's own decision",
    archs = is_amd, why_not = "RCCL runs on AMD's GPUs (gfx942, ...)",
    left_out = all_but_plain_sums,
    view = rccl_table,
    measured_only = "there is no room for a mark",
    lacks = function(source) return lacks_channels(source) or require("tuners.rccl").lacks(source) end },
  of_ncclx { name = "ncclx", file = "ncclx_tuner.csv", template = "tables/ncclx_tuner.csv.tmpl" },
  of_ncclx { name = "ncclx-json", file = "ncclx_tuner.json", template = "tables/ncclx_tuner.json.tmpl",
    build = ", in builds with folly", mute = true },
  of_mpi { name = "ompi", file = "ompi_rules.conf", template = "tables/ompi_rules.conf.tmpl",
    reader = "Open MPI 4.1 and 5.0: coll_tuned_dynamic_rules_filename",
    shown = { test = REAL, what = RUN_BY_OMPI:format("4.1.4 and 5.0.7 run") },
    elsewhere = OMPI_ELSEWHERE,
    per_nodes = OMPI_NODES,
    view = ompi_rules,
    lacks = lacks_ompi_rules("classic") },
  of_mpi { name = "ompi-v2", file = "ompi_rules_v2.conf", template = "tables/ompi_rules_v2.conf.tmpl",
    reader = "Open MPI 4.1.8, and 5.0 from 5.0.7 on: coll_tuned_dynamic_rules_filename",
    shown = { test = REAL, what = RUN_BY_OMPI:format("5.0.7 runs") },
    elsewhere = OMPI_ELSEWHERE,
    per_nodes = OMPI_NODES,
    view = ompi_rules,
    lacks = lacks_ompi_rules("v2") },
  of_mpi { name = "ompi-json", file = "ompi_rules.json", template = "tables/ompi_rules.json.tmpl",
    reader = "Open MPI 6.0 and later: coll_tuned_dynamic_rules_filename",
    shown = { test = REAL, what = RUN_BY_OMPI:format("6.0.0rc2 runs") },
    elsewhere = OMPI_ELSEWHERE,
    per_nodes = OMPI_JSON_NODES,
    view = ompi_json_rules,
    mute = true,
    measured_only = NO_MARK,
    lacks = lacks_ompi_rules("json") },
  of_mpi { name = "ompi-han", file = "ompi_han.conf", template = "tables/ompi_han.conf.tmpl",
    reader = "Open MPI 4.1 and later, on several nodes: coll_han_dynamic_rules_filename",
    shown = { test = "formats_ompi_reads_the_files",
      what = "coll/han of Open MPI 4.1.4 prints the rules that it took from it" },
    elsewhere = "an unmeasured communicator size, and every other collective, stays with the component of " ..
      "Open MPI's own decision; beyond the measured sizes the outermost rule",
    view = ompi_han,
    per_nodes = OMPI_HAN_NODES,
    lacks = function(source) return require("formats.ompi_han").lacks(source) end },
  of_mpi { name = "ompi-parameters", file = "ompi_tp{tp}.conf", template = "tables/ompi_tp.conf.tmpl",
    per_tp = true, with = "ompi-parameters-rules",
    reader = "Open MPI: mpirun --tune, for one communicator size each",
    shown = { test = "formats_ompi_reads_the_files",
      what = "Open MPI 4.1 runs: ompi_info shows the parameters" },
    elsewhere = "it holds for the one communicator size that it is named after",
    left_out = function() return {} end,
    view = function(source) return { tp_tables = require("formats.ompi").searched(source) } end,
    lacks = function(source) return require("formats.ompi").lacks_search(source) end },
  of_mpi { name = "ompi-parameters-rules", file = "ompi_tp{tp}_rules.conf",
    template = "tables/ompi_rules.conf.tmpl", per_tp = true,
    reader = "Open MPI, by ompi_tp{N}.conf: the rules that hold under its parameters",
    shown = { test = "formats_ompi_reads_the_files",
      what = "Open MPI 4.1 runs: its calls show which algorithm ran" },
    elsewhere = OMPI_ELSEWHERE,
    view = function(source) return { tp_tables = require("formats.ompi").searched_with_rules(source) } end,
    lacks = function(source) return require("formats.ompi").lacks_searched_rules(source) end },
  of_mpi { name = "mpich", file = "mpich_selection.json",
    text = function(view) return require("formats.mpich").text(view) end,
    reader = "MPICH 4: MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    shown = { test = REAL,
      what = "MPICH 4.2.1 and 5.0.2 run every kind of collective; each allreduce aborts if the file has " ..
        "a wrong algorithm at its size" },
    elsewhere = "an unmeasured communicator size, and every other collective, gets MPICH's own choice; " ..
      "beyond the measured sizes the outermost entry",
    view = mpich_selection,
    mute = true,
    measured_only = NO_MARK,
    lacks = function(source) return lacks_mpich(source) or require("formats.mpich").lacks(source) end },
  { name = "ucc", file = "ucc.conf", template = "tables/ucc.conf.tmpl",
    reader = "UCC, TL/UCP: UCC_CONFIG_FILE, ~/ucc.conf, or share/ucc.conf of its prefix",
    shown = { test = "tuners_ucc_obeys_its_sections", real = REAL,
      what = "UCC 1.9.0 runs under Open MPI 6.0.0rc2: which algorithm ran; and a program with its rules, " ..
        "sections in both orders" },
    elsewhere = "UCC's own choice for an unmeasured number of ranks or nodes, other collectives, and " ..
      "memory of GPUs; beyond the measured sizes the outermost range",
    archs = is_host, why_not = "its sections are for host memory",
    left_out = all_but_plain_sums,
    view = by_size(is_ucc),
    measured_only = NO_MARK,
    lacks = lacks_rows(is_ucc, "no row of an algorithm of UCC's; import osu_allreduce's times with " ..
      "--strategy UCC_KNOMIAL and others") },
  { name = "table", file = "table.csv",
    text = function(model) return model.canonical:text(model.arch) end,
    reader = "gentables, spreadsheets: every dtype, op and mode",
    shown = { test = "formats_tables_are_read_back",
      what = "read back" },
    mute = true,
    elsewhere = "such a cell is marked unmeasured" },
  { name = "picture", file = "best_strategy.svg", template = "reports/best_strategy.svg.tmpl",
    reader = "people: which strategy is best where; report.md shows it",
    plane = true,
    lacks = lacks_shapes("over which it is drawn") },
  { name = "report", file = "report.md", template = "reports/report.md.tmpl",
    reader = "people" },
}

-- The name of a format's file for people: ompi_tp{N}.conf.
function formats.shown_file(format) return (format.file:gsub("{tp}", "{N}")) end

-- The names of the tests that show that the reader obeys the file.
function formats.tests_of(format)
  return format.shown and { format.shown.test, format.shown.real } or {}
end

-- The names of all formats, or of those that an arch (a row of lists.archs) has.
function formats.names(arch)
  return sequences.map(formats.list, function(format)
    return (not arch or formats.is_for(format, arch)) and format.name or nil
  end)
end

-- The option of verbs that make these files.
formats.option = { name = "formats", value = "LIST", comma = true, one_of = formats.names(),
  help = "of " .. table.concat(formats.names(), ", ") .. " (default: all of the arch)" }

function formats.find(name)
  return sequences.named(formats.list, name)
end

-- The row of lists.archs, or all_archs.
function formats.arch(name)
  return name == lists.all_archs.name and lists.all_archs or lists.arch(name)
end

-- Whether the arch (a row of lists.archs, or all_archs) has this format.
function formats.is_for(format, arch)
  if format.scope ~= arch.scope then return false end
  return format.archs == nil or format.archs(arch) == true
end

return formats
