-- mfu: FLOPs that the program's GEMMs need, over the peak of the GPU during total_time. Other operations are
-- not counted, so it is a lower bound.
local fail = require "base.fail"
local gemm = require "profile.gemm"
local busy_time = require "profile.busy_time"
local per_rank = require "profile.per_rank"

local function note_missing_shapes(rank, sums)
  if sums.without_shapes > 0 then
    fail.note("%s: %d of %d GEMMs have no shapes: not counted", rank.label, sums.without_shapes,
      sums.calls)
  end
end

return per_rank.metric {
  check = function(args)
    if not args.peak_tflops then
      fail.input("mfu needs --peak-tflops N, the GPU's peak in the data type used")
    end
  end,
  value = function(rank, args)
    local sums = gemm.sums(rank.gemms)
    if rank.siblings > 1 then return nil, "a file of one GPU: its GEMMs do not name their GPU" end
    if sums.calls == 0 then return nil, "GEMMs: no aten::mm, addmm, bmm, baddbmm or _scaled_mm in it" end
    if sums.calls == sums.without_shapes then
      return nil, "shapes: no GEMM has Input Dims; the profiler's record_shapes=True records them"
    end
    note_missing_shapes(rank, sums)
    local span_ns = busy_time.span(rank.kernels, rank.copies, rank.sets)
    local tflops = sums.flops / span_ns / 1e3
    return tflops / args.peak_tflops, { flops = sums.flops, gemms = sums.calls,
      gemms_without_shapes = sums.without_shapes, total_ms = span_ns / 1e6, tflops = tflops }
  end,
}
