-- Phases that are inferred from calls of attention, if no annotation names one: of small traces by hand, and
-- of a recorded one with annotations, which show the right phases.
-- Needs: zlib
local file = require "core.file"
local inferred_phases = require "trace.sheets.inferred_phases"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local opening = require "trace.analysis.opening"
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

-- Attention of flash-attn over pages of a cache with 512 rows: `rows` of Q, of so many requests; `longest`:
-- the most rows of one, or nil.
local function attention(rows, requests, longest, duration)
  now = now + 20
  local dims, types, concrete = {}, {}, {}
  for i = 1, 16 do dims[i], types[i], concrete[i] = {}, "", "" end
  dims[1], dims[2], dims[3], dims[5] = { rows, 8, 64 }, { 99, 16, 2, 64 }, { 99, 16, 2, 64 }, { requests + 1 }
  types[1], types[2], types[3], types[5] = BF16, BF16, BF16, "int"
  concrete[11], concrete[12], concrete[16] = longest and tostring(longest) or "", "512", "True"
  trace:ran("_vllm_fa2_C::varlen_fwd", now, duration, { dims = dims, types = types, concrete = concrete })
end

local function sdpa(rows, keys, duration, thread)
  now = now + 20
  trace:ran("aten::_scaled_dot_product_flash_attention", now, duration, { types = { BF16, BF16, BF16 },
    tid = thread, dims = { { 1, 8, rows, 64 }, { 1, 8, keys, 64 }, { 1, 8, keys, 64 } },
    concrete = { "", "", "", "0", "False" } }, { tid = thread })
end

local DECODE, PREFILL = "BatchDecodeWithPagedKVCacheKernel", "BatchPrefillWithPagedKVCacheKernel"

-- Attention that only its kernel's name describes.
local function named(kernel, duration)
  now = now + 20
  trace:launch(now, duration, { kernel = kernel })
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

-- Padded to 8 rows, a decode of 3 requests has one row at most of each. Without the longest, it may be a
-- prefill, and is of no phase.
function TestPhases.test_padded_rows_and_an_unknown_longest_request()
  attention(8, 3, 1, 5)
  attention(3, 3, nil, 6)
  attention(8, 3, nil, 7)
  luaunit.assertEquals(phases_of(trace:sheets "padded"), { decode = { 2, 11, SHAPES },
    ["outside of steps"] = { 0, 7 } })
end

-- Of 32 requests: 2 of 100 rows beside 30 of one row; 2 rows each, as of speculative decoding, beside 1 of 5;
-- some of 10 to 100 rows, which may be prefills or not; all of 90 to 100.
function TestPhases.test_many_requests()
  for phase, call in pairs { mixed = { 230, 32, 100 }, decode = { 64, 32, 2 },
    prefill = { 3100, 32, 100 } } do
    trace, now = small_trace.new(), 0
    attention(call[1], call[2], call[3], 5)
    luaunit.assertEquals(phases_of(trace:sheets "many"), { [phase] = { 1, 5, SHAPES } })
  end
  for _, call in ipairs { { 67, 32, 5 }, { 700, 32, 100 } } do
    trace, now = small_trace.new(), 0
    attention(call[1], call[2], call[3], 5)
    luaunit.assertNil(phases_of(trace:sheets "unclear"))
  end
end

-- The steps have 3 layers, each with a prefill and a decode; after an embedding, all of a step is mixed.
function TestPhases.test_a_step_with_both_phases_in_each_layer_is_mixed()
  for _ = 1, 2 do
    embedding()
    for _ = 1, 3 do
      product()
      named(PREFILL, 5)
      named(DECODE, 5)
    end
  end
  embedding()
  for _ = 1, 3 do named(DECODE, 5) end
  luaunit.assertEquals(phases_of(trace:sheets "mixed"), { mixed = { 12, 122, NAMES },
    decode = { 3, 16, NAMES } })
end

-- Replayed decodes have no embedding, and follow a prefill that has one.
function TestPhases.test_a_prefill_and_replayed_decodes_are_not_mixed()
  for _ = 1, 2 do
    embedding()
    for _ = 1, 6 do named(PREFILL, 5) end
    for _ = 1, 6 do named(DECODE, 5) end
  end
  luaunit.assertEquals(phases_of(trace:sheets "replayed"), { prefill = { 12, 62, NAMES },
    decode = { 12, 60, NAMES } })
end

function TestPhases.test_phases_that_alternate_without_embeddings_are_mixed()
  for _ = 1, 6 do named(DECODE, 5) end
  for _ = 1, 4 do
    named(PREFILL, 5)
    named(DECODE, 5)
  end
  for _ = 1, 6 do named(PREFILL, 5) end
  luaunit.assertEquals(phases_of(trace:sheets "alternating"), { decode = { 6, 30, NAMES },
    mixed = { 8, 40, NAMES }, prefill = { 6, 30, NAMES } })
end

-- An op of attention without shapes has no phase, but its kernel has; an op with a phase decides.
function TestPhases.test_kernels_of_ops_without_shapes_count()
  now = 20
  trace:ran("flash_attn_3::fwd", now, 5, nil, { kernel = DECODE })
  luaunit.assertEquals(phases_of(trace:sheets "no_shapes"), { decode = { 1, 5, NAMES } })
  attention(300, 3, 120, 50)
  trace:launch(now + 2, 5, { kernel = DECODE })
  luaunit.assertEquals(phases_of(trace:sheets "both"), { decode = { 1, 5, NAMES },
    prefill = { 1, 55, SHAPES } })
end

-- Of two threads, one prefills while the other decodes; then both, one after the other.
function TestPhases.test_threads_with_different_phases_at_the_same_time_have_none()
  for i = 1, 3 do
    sdpa(64, 64, 30, 1)
    sdpa(1, 64 + i, 3, 2)
  end
  local sheets, notes = trace:sheets "threads"
  luaunit.assertNil(phases_of(sheets))
  luaunit.assertEquals({ #notes, notes[1][1] }, { 1, "without phases" })
  trace, now = small_trace.new(), 0
  for _ = 1, 3 do sdpa(64, 64, 30, 1) end
  for i = 1, 3 do sdpa(1, 64 + i, 3, 2) end
  sheets, notes = trace:sheets "successive"
  luaunit.assertEquals({ phases_of(sheets), #notes }, { { prefill = { 3, 90, SHAPES },
    decode = { 3, 9, SHAPES } }, 0 })
end

function TestPhases.test_without_an_embedding_a_phase_begins_with_its_attention()
  product()
  sdpa(64, 64, 30)
  product()
  sdpa(1, 65, 4)
  product()
  sdpa(1, 66, 4)
  luaunit.assertEquals(phases_of(trace:sheets "plain"), { prefill = { 1, 50, SHAPES },
    decode = { 2, 18, SHAPES } })
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
    ["BatchDecodeWithPagedKVCacheKernel"] = "decode", ["void mla_extend_attention"] = "prefill",
    ["at::native::sign_extend_kernel"] = "none", ["prefill_mlp"] = "none",
    ["gemmlayout_prefill"] = "none" } do
    luaunit.assertEquals(inferred_phases.of_kernel(name) or "none", phase, name)
  end
end

-- A decode shows by a cache that grows, or by a step of decodes alone.
function TestPhases.test_encoders_and_trainings_have_no_phases()
  embedding()
  sdpa(64, 64, 30)
  luaunit.assertNil(phases_of(trace:sheets "encoder"))
  for _ = 1, 2 do -- attention with one row, as an encoder pools with
    sdpa(64, 64, 30)
    sdpa(1, 64, 4)
  end
  luaunit.assertNil(phases_of(trace:sheets "pooling"))
  sdpa(1, 65, 4)
  luaunit.assertNotNil(phases_of(trace:sheets "with_decode"))
  trace:ran("autograd::engine::evaluate_function: MmBackward0", 5000, 3)
  luaunit.assertNil(phases_of(trace:sheets "training"))
end

function TestPhases.test_a_step_of_decodes_alone_is_of_a_decoder()
  embedding()
  for _ = 1, 2 do sdpa(64, 64, 30) end
  embedding()
  for _ = 1, 2 do sdpa(1, 512, 3) end
  luaunit.assertEquals(phases_of(trace:sheets "static"), { prefill = { 2, 61, SHAPES },
    decode = { 2, 7, SHAPES } })
end

local function step(number, start)
  trace:add { ph = "X", cat = "user_annotation", name = "ProfilerStep#" .. number, pid = 1, tid = 1,
    ts = start, dur = 900 }
end

function TestPhases.test_steps_have_the_phase_of_their_calls()
  for i, rows in ipairs { 64, 1, 1 } do
    now = 1000 * i
    sdpa(rows, 63 + i, 5)
    if i == 3 then sdpa(64, 64, 5) end
    step(i, 1000 * i)
  end
  step(4, 5000)
  local steps, found = trace:sheets("steps").steps, {}
  for row = 1, 4 do found[row] = { steps.cell(row, "phase"), steps.cell(row, "inferred from") } end
  luaunit.assertEquals(found, { { "prefill", SHAPES }, { "decode", SHAPES }, { "mixed", SHAPES }, {} })
end

-- The cells steps, percent and time per step (µs) of each phase.
local function shares_of(sheets)
  local out = {}
  for row = 1, #sheets.phases.rows do
    local function cell(title) return sheets.phases.cell(row, title) end
    local per_step = cell "time per step ms"
    out[cell "phase"] = { cell "steps" or "unknown", cell "percent" and math.floor(cell "percent" + 0.5),
      per_step and math.floor(per_step * 1000 + 0.5) }
  end
  return out
end

-- Of a prefill of 50 µs and two decodes of 20 µs each, with 1 µs between: 92 µs. With attention
-- before the first embedding, the number of prefills is unknown.
function TestPhases.test_steps_begin_with_embeddings()
  for _, rows in ipairs { { 300, 3, 120, 48 }, { 3, 3, 1, 18 }, { 3, 3, 1, 18 } } do
    embedding()
    attention(table.unpack(rows))
  end
  luaunit.assertEquals(shares_of(trace:sheets "steps"), { prefill = { 1, 54, 50 }, decode = { 2, 45, 21 } })
  trace, now = small_trace.new(), 0
  attention(300, 3, 120, 50)
  embedding()
  attention(300, 3, 120, 50)
  luaunit.assertEquals(shares_of(trace:sheets "unknown"), { prefill = { "unknown", 100 } })
end

-- The times of selected steps do not contain those between them.
function TestPhases.test_selected_steps_of_one_phase()
  for i = 1, 3 do
    now = 1000 * i
    step(i, 1000 * i)
    embedding()
    for _ = 1, 2 do sdpa(1, 64 + i, 10) end
  end
  opening.select { steps = { [1] = true, [3] = true } }
  local done, sheets = pcall(function() return trace:sheets "selected" end)
  opening.select(nil)
  luaunit.assertTrue(done, sheets)
  luaunit.assertEquals(shares_of(sheets), { decode = { 2, 100, 23 } })
end

-- Each call is looked at a few times, however many steps there are.
function TestPhases.test_calls_and_steps_are_walked_together()
  local calls, marks, reads = {}, {}, 0
  for i = 1, 100 do
    local fields = { start = i, phase = i % 2 == 0 and "decode" or "prefill", from = NAMES }
    calls[i] = setmetatable({}, { __index = function(_, key)
      reads = reads + 1
      return fields[key]
    end })
    marks[i] = { start = i - 0.25, stop = i + 0.5 }
  end
  marks[51].stop, marks[52].start, marks[52].stop = 51, 51, 53
  local found = inferred_phases.of_marks(calls, marks)
  luaunit.assertEquals({ found[1].phase, found[50].phase, found[51].phase, found[52].phase },
    { "prefill", "decode", nil, "mixed" })
  luaunit.assertTrue(reads < 1500, reads)
  local unclear = { { start = 1, phase = "unclear" }, { start = 2, phase = "decode", from = NAMES } }
  luaunit.assertEquals(inferred_phases.of_marks(unclear, { { start = 0, stop = 3 } }), { {} })
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
