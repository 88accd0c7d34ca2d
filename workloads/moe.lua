-- Two mixture-of-experts blocks, hidden size 512: attention and the router, then experts on every rank. One
-- all_to_all sends tokens to the experts, another one returns them. The router is of float32 and the rest of
-- smaller types, as is usual. Its load is uneven: of two ranks one gets a third of the tokens, the other two
-- thirds, and they swap from call to call. There are two micro-batches: one is computed while the other is
-- sent. Keys: see small.lua.
local hidden = 512

local attention = {
  { name = "attention.qkv", n = 3 * hidden, k = hidden },
  { name = "attention.out", n = hidden, k = hidden },
  { name = "router", n = 8, k = hidden, dtype = "float32" },
}
local expert = {
  { name = "expert.up", n = 4 * hidden, k = hidden },
  { name = "expert.down", n = hidden, k = 4 * hidden },
}
local uneven = { load = { 1, 2 }, top_k = 1 }

return {
  name = "moe",
  dtype = { host = "float32", cuda = "bfloat16" },
  tokens = 384,
  micro_batches = 2,
  layers = {
    { name = "attention1", gemms = attention },
    { name = "experts1", gemms = expert, experts = uneven },
    { name = "attention2", gemms = attention },
    { name = "experts2", gemms = expert, experts = uneven },
  },
  gradients = { collective = "allreduce", bucket_bytes = 1024 * 1024 },
}
