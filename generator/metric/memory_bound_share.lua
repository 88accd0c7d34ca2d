-- memory_bound_share: always rejected. The roofline of a kernel needs its measured bytes and FLOPs; no trace
-- has them, and the utilisation of the multiprocessors does not replace them.
local fail = require "base.fail"

return {
  run = function(_, row)
    fail.input("%s needs roofline data, a kernel's bytes and FLOPs as ncu --set roofline measures them; " ..
      "neither profiler traces nor nsys exports have them", row.name)
  end,
}
