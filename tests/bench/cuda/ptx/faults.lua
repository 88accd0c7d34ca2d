-- Plants a fault in the PTX of a kernel, as a compiler or a mistake in inline assembly could make it.
--
--   gentables lua faults.lua                       prints the name of each fault, and its kernel
--   gentables lua faults.lua NAME FILE > FAULTY    plants one in a file with that kernel alone; prints to
--                                                  stderr "plain" or "model" (model.h), with which the fault
--                                                  is caught, and the reason, a pattern of grep
--
-- It is an error if a fault finds no place.

local WRONG = "^FAILED: .*: [1-9][0-9]* wrong elements$"
local UNKNOWN = "^FAILED: .*/faulty.ptx:[0-9][0-9]*: gentables_[a-z0-9_]*: unknown instruction form: "
local NO_MEMORY = "^FAILED: PTX: an access to memory that is in no allocation"
local RACE = "^FAILED: PTX model: a race: "
local TWO_NAMES = "^FAILED: PTX model: two names of a word, and no fence"
local ONESHOT, TWOSHOT = "oneshot_bf16_fp32_none", "twoshot_bf16_fp32_rms_norm"
local NVLS, MULTICAST = "nvls_twoshot_bf16_fp32_rms_norm", "oneshot_multicast_bf16_fp32_none"
local NORM, FP8 = "oneshot_bf16_fp32_rms_norm", "oneshot_bf16_fp32_fp8"

-- name = { kernel, a pattern, its replacement, the reason, first = the first place alone, model = with
-- model.h }
local faults = {
  -- Caught by the translator: forms that no kernel has.
  SCOPE_OF_A_GPU = { TWOSHOT, "st%.release%.sys", "st.release.gpu", UNKNOWN .. "st.release.gpu.global.u32" },
  ROUNDED_TO_ZERO = { ONESHOT, "cvt%.rn%.bf16x2", "cvt.rz.bf16x2", UNKNOWN .. "cvt.rz.bf16x2.f32" },
  SUM_IN_BFLOAT16 = { NVLS, "%.acc::f32", "",
    UNKNOWN .. "multimem.ld_reduce.relaxed.sys.global.add.v4.bf16x2" },

  -- By results.
  SWAPPED_HALVES = { ONESHOT, "(cvt%.rn%.bf16x2%.f32 %%r%d+), (%%%w+), (%%%w+);", "%1, %3, %2;", WRONG },
  SWAPPED_CODES = { FP8, "(cvt%.rn%.satfinite%.e4m3x2%.f32 %%rs%d+), (%%%w+), (%%%w+);", "%1, %3, %2;",
    WRONG },
  SWAPPED_WORDS = { ONESHOT, "(ld%.relaxed%.sys%.global%.v4%.u32 {)(%%r%d+),(%%r%d+)", "%1%3,%2", WRONG },
  INPUT_FROM_OUT = { ONESHOT, "(ld%.param%.u64 [^[]+%[%%rd%d+%+)104%]", "%1112]", WRONG },
  RESIDUAL_FROM_INPUT = { NORM, "(ld%.param%.u64 [^[]+%[%%rd%d+%+)120%]", "%1104]", WRONG },
  EPSILON_FROM_SCALE = { NORM, "(ld%.param%.f32 [^[]+%[[%w_]+%+)24%]", "%128]", WRONG },
  FEWER_LANES = { NORM, "(mov%.u32 %s*%%r%d+, )16;", "%18;", WRONG },
  SWAPPED_WORDS_FOR_ALL = { MULTICAST,
    "(multimem%.st%.relaxed%.sys%.global%.v4%.f32 %[[^]]+%], {)(%%r%d+),%s*(%%r%d+)", "%1%3,%2", WRONG },
  STORED_TO_ONE = { MULTICAST, "multimem%.st%.relaxed%.sys%.global%.v4%.f32",
    "st.relaxed.sys.global.v4.u32", "^FAILED: .*: deadlock$" },
  EMPTY_IS_ZERO = { ONESHOT, "%-2147483648;", "0;", WRONG },
  NO_WAIT_FOR_LAUNCHES = { TWOSHOT, "griddepcontrol%.wait;", "", WRONG },
  NO_BARRIER = { TWOSHOT, "bar%.sync %s*0;", "", WRONG, first = true },

  -- By a check while the kernel runs.
  SLOTS_FROM_FLAGS = { ONESHOT, "(ld%.param%.u64 [^[]+%[%%rd%d+%+)64%]", "%180]", NO_MEMORY },
  OTHER_RANK_STRIDE = { ONESHOT, "(mul%.wide%.u32 %s*%%rd%d+, %%r%d+, )64;", "%172;",
    "^FAILED: PTX: no parameter is at", first = true },
  NARROW_ADDRESSES = { ONESHOT, "(shl%.b64 %s*%%rd%d+, %%rd%d+, )4;", "%13;",
    "^FAILED: PTX: a misaligned access" },
  SOME_LANES = { NORM, "(mov%.u32 %s*%%r%d+, )%-1;", "%165535;", "^FAILED: PTX: a shuffle of some lanes" },
  NO_ARRIVAL_IN_CLUSTER = { NORM, "barrier%.cluster%.arrive%.release%.aligned;", "",
    "^FAILED: .*wait.* arriv" },
  NO_WAIT_IN_CLUSTER = { NORM, "barrier%.cluster%.wait%.acquire%.aligned;", "", "^FAILED: .*arriv" },

  -- By the model: results may be right by chance.
  RELAXED_RELEASE = { TWOSHOT, "st%.release%.sys", "st.relaxed.sys", RACE, model = true },
  RELAXED_ACQUIRE = { TWOSHOT, "ld%.acquire%.sys%.global", "ld.relaxed.sys", RACE, model = true },
  PLAIN_LOAD = { ONESHOT, "ld%.relaxed%.sys%.global%.v4", "ld.global.v4", RACE, model = true },
  PLAIN_STORE = { ONESHOT, "st%.relaxed%.sys%.global%.v4", "st.global.v4", RACE, model = true },
  NO_BARRIER_AT_THE_END = { ONESHOT, "bar%.sync %s*0;", "", RACE, model = true },
  NO_FENCE = { NVLS, "fence%.proxy%.alias;", "", TWO_NAMES, model = true },
  NO_FENCE_AT_THE_END = { MULTICAST, "fence%.proxy%.alias;", "", TWO_NAMES, model = true },
}

local name, path = arg[1], arg[2]
if not name then
  local names = {}
  for of, fault in pairs(faults) do names[#names + 1] = of .. " " .. fault[1] end
  table.sort(names)
  print(table.concat(names, "\n"))
  return
end

local fault, file = faults[name], assert(io.open(path))
local text, places = file:read("a"):gsub(fault[2], fault[3], fault.first and 1 or nil)
file:close()
if places == 0 then
  io.stderr:write(("FAILED: %s: %s has no text like %s\n"):format(name, path, fault[2]))
  os.exit(1)
end
io.write(text)
io.stderr:write(fault.model and "model " or "plain ", fault[4], "\n")
