-- A small step for any machine: four layers of one GEMM each, gradients all-reduced in buckets during the
-- backward GEMMs. 20 steps take a fraction of a second.
--
-- A workload is a Lua file that returns a table; it can call no functions. For each GEMM of the forward
-- pass, y[m, n] = x[m, k] * w[n, k] transposed, the backward pass has two: dx[m, k] = dy * w, and the
-- gradient dw[n, k] = dy transposed * x.
--   name                      its name
--   dtype ("float32")         of GEMMs and messages: float32, bfloat16 or float16; or one for each backend,
--                             { host = "float32", cuda = "bfloat16" }. Products are summed in fp32 and
--                             rounded once. On the host OpenBLAS computes in fp32: elements of bfloat16 and float16
--                             are stored and sent in that type, widened before a GEMM and rounded after it;
--                             its time includes both
--   tokens                    rows of a rank's input, m of its GEMMs
--   micro_batches (1)         number of parts in which a step goes through the layers; gradients add up
--   layers                    in order, each:
--     name, copies (1)        number of such layers in a row
--     gemms                   { { name =, n =, k =, m = (tokens / micro_batches), backward = (true),
--                             dtype = (the workload's) }... }: operands, result and gradient are of the
--                             GEMM's dtype, in both passes
--     experts                 { load = { 1, 2 }, top_k = 1 }: the GEMMs work on tokens of all ranks; one
--                             all_to_all sends them to the experts, another one returns them. At the i-th
--                             call of experts, rank r gets a share of load[r + i], so that loads rotate; experts
--                             have no common gradients. Tokens are sent in the dtype of the experts' first
--                             GEMM (and their gradients back), and returned in that of the last one
--   gradients                 { collective = "allreduce", bucket_bytes = 4 MiB }: in buckets, as they get
--                             ready; each bucket has one dtype, as in PyTorch's DistributedDataParallel. Or
--                             "reduce_scatter": weights are spread over the ranks, gathered before each layer
--                             (all_gather, one layer ahead), and their gradients are scattered after it, each
--                             dtype by itself. Or "none"
--   steps (20), warm_up (3)   numbers of measured steps, and of steps before them
return {
  name = "small",
  dtype = "float32",
  tokens = 256,
  layers = {
    { name = "layer", copies = 4, gemms = { { name = "linear", n = 256, k = 256 } } },
  },
  gradients = { collective = "allreduce", bucket_bytes = 256 * 1024 },
}
