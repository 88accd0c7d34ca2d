-- A small step that runs anywhere: four layers of one GEMM each, gradients all-reduced in buckets while the
-- backward GEMMs go on. A fraction of a second for 20 steps.
--
-- A workload is a Lua file that returns a table; it runs without any functions at hand. For each GEMM of the
-- forward pass, y[m, n] = x[m, k] * w[n, k] transposed, the backward pass has two: dx[m, k] = dy * w, and the
-- gradient dw[n, k] = dy transposed * x.
--   name                      what it is called
--   dtype ("float32")         of GEMMs and messages: float32, bfloat16 or float16; or, where backends differ,
--                             { host = "float32", cuda = "bfloat16" }. Products are summed in fp32 and rounded
--                             once. On the host OpenBLAS computes all in fp32: elements of bfloat16 and
--                             float16 are stored and sent as such, but widened before a GEMM and rounded
--                             behind it, in its time
--   tokens                    rows of a rank's input, m of its GEMMs
--   micro_batches (1)         a step goes through the layers in so many parts, and gradients add up over them
--   layers                    in order, each:
--     name, copies (1)        so many of it, one after another
--     gemms                   { { name =, n =, k =, m = (tokens / micro_batches), backward = (true),
--                             dtype = (the workload's) }... }: operands and result are of the GEMM's dtype, in
--                             both passes, and so is its gradient
--     experts                 { load = { 1, 2 }, top_k = 1 }: its GEMMs work on tokens of all ranks, which an
--                             all_to_all brings there and another brings back. The i-th time that experts are
--                             called, rank r gets load[r + i] of them, so that loads go round; experts have
--                             no gradients in common. Tokens travel in the dtype of the experts' first GEMM to
--                             it (and their gradients back), in that of the last one from it
--   gradients                 { collective = "allreduce", bucket_bytes = 4 MiB }: in buckets, as they get
--                             ready, those of each dtype in buckets of their own, as PyTorch's
--                             DistributedDataParallel has them; or "reduce_scatter": weights are spread over
--                             the ranks, gathered before each layer (all_gather, one layer ahead), and their
--                             gradients scattered after it, each dtype by itself; or "none"
--   steps (20), warm_up (3)   how many are measured, and come before
return {
  name = "small",
  dtype = "float32",
  tokens = 256,
  layers = {
    { name = "layer", copies = 4, gemms = { { name = "linear", n = 256, k = 256 } } },
  },
  gradients = { collective = "allreduce", bucket_bytes = 256 * 1024 },
}
