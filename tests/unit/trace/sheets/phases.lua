-- Phases that are inferred from calls of attention, if no annotation names one: of small traces by hand, and
-- of a recorded one with annotations, which show the right phases.
-- Needs: zlib
local file = require "core.file"
local inferred_phases = require "trace.sheets.inferred_phases"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local rank = require "trace.ops.rank"
local rank_report = require "trace.reports.rank_report"
local small_trace = require "unit.trace.reports.small_trace"

local BF16 = "c10::BFloat16"

local trace, now

local function embedding()
  now = now + 100
  trace:ran("aten::embedding", now, 1)
end

-- A product before attention, of 10 µs.
local function product()
  now = now + 20
  trace:ran("aten::mm", now, 10)
end

-- Attention of flash-attn over pages of a cache: `rows` of Q, of so many requests; `longest`: the most rows
-- of one, or nil.
local function attention(rows, requests, longest, duration)
  now = now + 20
  local dims, types, concrete = {}, {}, {}
  for i = 1, 16 do dims[i], types[i], concrete[i] = {}, "", "" end
  dims[1], dims[2], dims[3], dims[5] = { rows, 8, 64 }, { 99, 16, 2, 64 }, { 99, 16, 2, 64 }, { requests + 1 }
  types[1], types[2], types[3], types[5] = BF16, BF16, BF16, "int"
  concrete[11], concrete[12], concrete[16] = longest and tostring(longest) or "", "512", "True"
  trace:ran("_vllm_fa2_C::varlen_fwd", now, duration, { dims = dims, types = types, concrete = concrete })
end

local function sdpa(rows, keys, duration)
  now = now + 20
  trace:ran("aten::_scaled_dot_product_flash_attention", now, duration, { types = { BF16, BF16, BF16 },
    dims = { { 1, 8, rows, 64 }, { 1, 8, keys, 64 }, { 1, 8, keys, 64 } },
    concrete = { "", "", "", "0", "False" } })
end

-- { phase = { calls, GPU time in µs, inferred from } } of the sheet; nil: there is none.
local function phases_of(sheets)
  if not sheets.phases then return nil end
  local out = {}
  for row = 1, #sheets.phases.rows do
    local function cell(title) return sheets.phases.cell(row, title) end
    out[cell "phase"] = { cell "calls of attention", math.floor(cell "busy_time ms" * 1000 + 0.5),
      cell "inferred from" }
  end
  return out
end

local SHAPES, NAMES = "shapes of attention", "names of kernels"

local TestPhases = { setUp = function() trace, now = small_trace.new(), 0 end }

-- Steps of 300 rows of 3 requests, of one row each of 3, and of 1 that begins with 98 beside 2. A phase
-- begins with its embedding.
function TestPhases.test_rows_of_attention_and_requests()
  for _, step in ipairs { { 300, 3, 120, 50 }, { 3, 3, 1, 5 }, { 3, 3, 1, 6 }, { 100, 3, 98, 20 } } do
    embedding()
    product()
    attention(table.unpack(step))
  end
  local sheets = trace:sheets "rows"
  luaunit.assertEquals(phases_of(sheets), { prefill = { 1, 61, SHAPES }, decode = { 2, 33, SHAPES },
    mixed = { 1, 31, SHAPES } })
  luaunit.assertNil(sheets.steps)
end

-- Padded to 8 rows, a decode of 3 requests has one row at most of each. Without the longest, rows count.
function TestPhases.test_padded_rows_and_an_unknown_longest_request()
  attention(8, 3, 1, 5)
  attention(3, 3, nil, 6)
  attention(8, 3, nil, 7)
  luaunit.assertEquals(phases_of(trace:sheets "padded"), { decode = { 2, 11, SHAPES },
    prefill = { 1, 7, SHAPES } })
end

function TestPhases.test_without_an_embedding_a_phase_begins_with_its_attention()
  product()
  sdpa(64, 64, 30)
  product()
  sdpa(1, 65, 4)
  product()
  luaunit.assertEquals(phases_of(trace:sheets "plain"), { prefill = { 1, 50, SHAPES },
    decode = { 1, 14, SHAPES } })
end

-- All kernels of a replayed graph have one launch.
function TestPhases.test_names_of_kernels_decide_without_shapes()
  trace:launch(10, 40, { kernel = "void BatchPrefillWithPagedKVCacheKernel<...>" })
  trace:launch(50, 5, { kernel = "void vllm::paged_attention_v2_kernel<__nv_bfloat16>",
    runtime = "cudaGraphLaunch" })
  trace:kernel(2000, 8, { correlation = 2 })
  luaunit.assertEquals(phases_of(trace:sheets "kernels"), { prefill = { 1, 40, NAMES },
    decode = { 1, 13, NAMES } })
  for name, phase in pairs { ["_fwd_grouped_kernel_stage1"] = "none", ["flash_decode_kernel"] = "decode",
    ["decoder_layer"] = "none", ["void flashinfer::SingleDecodeWithKVCacheKernel<"] = "decode",
    ["BatchDecodeWithPagedKVCacheKernel"] = "decode", ["void mla_extend_attention"] = "prefill" } do
    luaunit.assertEquals(inferred_phases.of_kernel(name) or "none", phase, name)
  end
end

function TestPhases.test_encoders_and_trainings_have_no_phases()
  embedding()
  sdpa(64, 64, 30)
  luaunit.assertNil(phases_of(trace:sheets "encoder"))
  sdpa(1, 65, 4)
  luaunit.assertNotNil(phases_of(trace:sheets "with_decode"))
  trace:ran("autograd::engine::evaluate_function: MmBackward0", 5000, 3)
  luaunit.assertNil(phases_of(trace:sheets "training"))
end

local function step(number, start)
  trace:add { ph = "X", cat = "user_annotation", name = "ProfilerStep#" .. number, pid = 1, tid = 1,
    ts = start, dur = 900 }
end

function TestPhases.test_steps_have_the_phase_of_their_calls()
  for i, rows in ipairs { 64, 1, 1 } do
    now = 1000 * i
    sdpa(rows, 64, 5)
    if i == 3 then sdpa(64, 64, 5) end
    step(i, 1000 * i)
  end
  step(4, 5000)
  local steps, found = trace:sheets("steps").steps, {}
  for row = 1, 4 do found[row] = { steps.cell(row, "phase"), steps.cell(row, "inferred from") } end
  luaunit.assertEquals(found, { { "prefill", SHAPES }, { "decode", SHAPES }, { "mixed", SHAPES }, {} })
end

-- ---- a recorded trace --------------------------------------------------------------------------

-- The cells of the sheet phases of a trace, by phase and title.
local function recorded(path)
  for _, sheet in ipairs((rank_report.sheets(assert(rank.open(path))))) do
    if sheet.name == "phases" then
      local out = {}
      for _, cells in ipairs(sheet.rows) do
        out[cells[1]] = {}
        for i, title in ipairs(sheet.columns) do out[cells[1]][title] = cells[i] end
      end
      return out
    end
  end
end

-- Mixtral in PyTorch, with annotations around its prefill and each decode, which do not have one GPU event.
function TestPhases.test_a_recorded_trace_has_the_phases_of_its_annotations()
  lib.clean()
  local path = os.getenv "SOURCE" .. "/tests/recorded/traces/mixtral.json.gz"
  local plain, pipe = lib.work .. "/plain.json", io.popen(("gzip -dc '%s'"):format(path))
  assert(file.write(plain, (pipe:read("a"):gsub('"user_annotation"', '"other"'))))
  pipe:close()
  local right, inferred = recorded(path), recorded(plain)
  luaunit.assertEquals(inferred.decode["GPU events"], right.decode["GPU events"])
  luaunit.assertEquals(inferred.decode["busy_time ms"], right.decode["busy_time ms"])
  luaunit.assertEquals(inferred.prefill["GPU events"], right.prefill["GPU events"] + 1)
  luaunit.assertEquals(inferred.decode["calls of attention"], 4 * 4) -- layers, steps
  luaunit.assertNil(right.decode["inferred from"])
end

return require "suites" { { "TestPhases", TestPhases } }
