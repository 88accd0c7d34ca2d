-- Two dense transformer blocks, hidden size 512: attention's projections and the feed-forward network.
-- Gradients are all-reduced in buckets of 1 MiB during the backward GEMMs. Keys: see small.lua.
local hidden = 512

return {
  name = "dense",
  dtype = { host = "float32", cuda = "bfloat16" },
  tokens = 512,
  layers = {
    {
      name = "block",
      copies = 2,
      gemms = {
        { name = "attention.qkv", n = 3 * hidden, k = hidden },
        { name = "attention.out", n = hidden, k = hidden },
        { name = "ffn.up", n = 4 * hidden, k = hidden },
        { name = "ffn.down", n = hidden, k = 4 * hidden },
      },
    },
  },
  gradients = { collective = "allreduce", bucket_bytes = 1024 * 1024 },
}
