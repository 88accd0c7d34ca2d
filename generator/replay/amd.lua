-- The programs of AMD's libraries that time a single op: their command lines for a request, and the time in
-- their output. They are started with an argument vector, without a shell.
--
--   amd.command(request) -> argv | nil, reason
--   amd.text(argv) -> the command line, for people
--   amd.run(argv, seconds) -> microseconds | nil, reason
--   amd.device() -> the name of the GPU that they run on, or nil
local child_process = require "system.child_process"
local request = require "replay.request"

local amd = {}

local GRACE, DEVICE_PATIENCE = 2, 20
local programs = { gemm = "hipblaslt-bench", convolution = "MIOpenDriver" }

function amd.program(kind) return programs[kind] end

-- ---- hipblaslt-bench -----------------------------------------------------------------------------------

local hip_types = { float32 = "f32_r", float64 = "f64_r", bfloat16 = "bf16_r", float16 = "f16_r",
  float8_e4m3fn = "f8_r", float8_e5m2 = "bf8_r", float8_e4m3fnuz = "f8_fnuz_r",
  float8_e5m2fnuz = "bf8_fnuz_r" }

local letters = { [0] = "N", [1] = "T" }

local function add(argv, ...)
  for i = 1, select("#", ...) do argv[#argv + 1] = tostring((select(i, ...))) end
end

-- It counts in columns: it sees row-major operands transposed, so A and B change places.
local function add_sizes(argv, get)
  local m, n, k = get("m"), get("n"), get("k")
  add(argv, "-m", n, "-n", m, "-k", k, "--lda", get("ldb"), "--ldb", get("lda"), "--ldc", n, "--ldd", n)
  add(argv, "--stride_a", get("stride_b"), "--stride_b", get("stride_a"), "--stride_c", m * n,
    "--stride_d", m * n)
end

local function add_types(argv, dtype, out)
  local of_result = hip_types[out or dtype]
  add(argv, "--a_type", hip_types[dtype], "--b_type", hip_types[dtype], "--c_type", of_result, "--d_type",
    of_result)
  local compute = dtype == "float64" and "f64_r" or "f32_r"
  add(argv, "--scale_type", compute, "--bias_type", compute, "--compute_type", compute)
end

local function add_scaling(argv, scaling)
  local numbers = { tensor = 1, row = 2 }
  if not scaling then return true end
  if not numbers[scaling] then return nil, "hipblaslt-bench has no scales of blocks" end
  add(argv, "--scaleA", numbers[scaling], "--scaleB", numbers[scaling])
  return true
end

local function gemm_command(one)
  local function get(name) return request.value(one, name) end
  local addend, argv = get("addend"), { programs.gemm, "--api_method", "c" }
  add_sizes(argv, get)
  add(argv, "--alpha", get("alpha"), "--beta", addend == "matrix" and get("beta") or 0)
  add(argv, "--transA", letters[get("trans_b")], "--transB", letters[get("trans_a")])
  add(argv, "--batch_count", get("batch"))
  add_types(argv, get("dtype"), get("out_dtype"))
  if addend == "row" then add(argv, "--bias_vector") end
  local added, why = add_scaling(argv, get("scaling"))
  if not added then return nil, why end
  add(argv, "--algo_method", "heuristic", "--requested_solution", 1, "--cold_iters", 100, "--iters", 100,
    "--rotating", 512, "--flush", "--initialization", "trig_float", "--use_gpu_timer", "--print_kernel_info")
  return argv
end

-- ---- MIOpenDriver --------------------------------------------------------------------------------------

local driver_words = { float32 = "conv", float16 = "convfp16", bfloat16 = "convbfp16" }

-- The options of each list of sizes, for the last three dimensions in space.
local spatial_options = {
  { "input", "--in_d", "-H", "-W" }, { "filter", "--fil_d", "-y", "-x" },
  { "padding", "--pad_d", "-p", "-q" },
  { "stride", "--conv_stride_d", "-u", "-v" }, { "dilation", "--dilation_d", "-l", "-j" },
}
local neutral = { padding = "0" } -- of missing dimensions; of the others 1

local function split(text)
  local out = {}
  for number in tostring(text):gmatch("%d+") do out[#out + 1] = number end
  return out
end

local function convolution_command(one)
  local function get(name) return request.value(one, name) end
  local word, spatial = driver_words[get("dtype")], get("spatial")
  if not word then return nil, "MIOpenDriver has no " .. get("dtype") end
  local argv = { programs.convolution, word }
  add(argv, "-n", get("batch"), "-c", get("in_channels"))
  for _, row in ipairs(spatial_options) do
    local numbers = split(get(row[1]))
    while #numbers < 2 do table.insert(numbers, 1, neutral[row[1]] or "1") end
    if spatial == 3 then add(argv, row[2], numbers[1]) end
    add(argv, row[3], numbers[#numbers - 1], row[4], numbers[#numbers])
  end
  if spatial == 3 then add(argv, "--spatial_dim", 3) end
  local mode = get("transposed") == 1 and "trans" or "conv"
  add(argv, "-k", get("out_channels"), "-m", mode, "-g", get("groups"))
  if get("bias") == 1 then add(argv, "-b", 1) end
  if get("input_channels_last") == 1 then
    local layout = spatial == 3 and "NDHWC" or "NHWC"
    add(argv, "--in_layout", layout, "--fil_layout", layout, "--out_layout", layout)
  end
  add(argv, "-F", 1, "-t", 1)
  return argv
end

-- ---- running -------------------------------------------------------------------------------------------

-- It times the gradients of input and filter each for itself, with another output.
local function no_command() return nil, "MIOpenDriver is not run for backward convolutions" end

local makers = { gemm = gemm_command, convolution = convolution_command, convolution_backward = no_command }

function amd.command(one) return makers[one.kind](one) end

function amd.text(argv) return table.concat(argv, " ") end

-- The position of the time in each program's output: the line, counted from the last one, and microseconds in
-- its unit.
local answers = { [programs.gemm] = { line = 5, us = 1 }, [programs.convolution] = { line = 3, us = 1000 } }

local function time_in(lines, answer)
  local line = lines[#lines - answer.line + 1] or ""
  local last = line:find(",", 1, true) and line:match("([^,]*)$") or line:match("(%S*)%s*$")
  local number = tonumber(last)
  return number and number > 0 and number < math.huge and number * answer.us or nil
end

-- All lines that a program prints; or nil, reason.
local function lines_of(argv, seconds)
  local ran = child_process.run(argv, { seconds = seconds, grace = GRACE, returns_on_signal = true })
  if not ran.well then return nil, ran.reason end
  return ran.lines
end

function amd.run(argv, seconds)
  local lines, why = lines_of(argv, seconds)
  if not lines then return nil, ("%s: %s"):format(argv[1], why) end
  local us = time_in(lines, answers[argv[1]])
  if not us then return nil, argv[1] .. ": its output has no time at the expected place" end
  return us
end

-- rocminfo lists agents, one after the other; the processor is one, too.
function amd.device()
  local lines = lines_of({ "rocminfo" }, DEVICE_PATIENCE)
  local name
  for _, line in ipairs(lines or {}) do
    name = line:match("^%s*Marketing Name:%s*(.-)%s*$") or name
    if line:find("^%s*Device Type:%s*GPU") then return name end
  end
end

return amd
