-- Matrix products in the form that PyTorch's TunableOp tunes offline (PYTORCH_TUNABLEOP_UNTUNED_FILENAME,
-- torch.cuda.tunable.tune_gemm_in_file), for NVIDIA and AMD: a signature, and the sizes in the libraries'
-- order, by columns, in which A and B change places.
local request = require "replay.request"

local tunableop = {}

local types = { float32 = "float", float64 = "double", bfloat16 = "BFloat16", float16 = "Half" }
local letters = { [0] = "N", [1] = "T" }

-- The line of a request; nil: TunableOp has none for it.
function tunableop.line(one)
  local function get(name) return request.value(one, name) end
  local dtype = one.kind == "gemm" and not get("scaling") and types[get("dtype")]
  if not dtype then return nil end
  local layout = letters[get("trans_b")] .. letters[get("trans_a")]
  local batch = get("batch")
  local has_bias = get("addend") == "row" and batch == 1 and get("trans_a") ~= get("trans_b")
  local op = batch > 1 and "GemmStridedBatchedTunableOp" or has_bias and "GemmAndBiasTunableOp"
    or "GemmTunableOp"
  local count = batch > 1 and ("_B_%d"):format(batch) or ""
  return ("%s_%s_%s,%s_%d_%d_%d%s_ld_%d_%d_%d"):format(op, dtype, layout, layout:lower(), get("n"), get("m"),
    get("k"), count, get("ldb"), get("lda"), get("n"))
end

return tunableop
