-- memory_bound_share: refused. Whether a kernel is bound by memory is read from its measured bytes and FLOPs
-- (roofline); no trace has them, and how busy the multiprocessors were does not say it.
local fail = require "base.fail"

return {
  run = function(_, row)
    fail.input("%s needs roofline data, a kernel's bytes and FLOPs as ncu --set roofline measures them; " ..
      "neither profiler traces nor nsys exports have them", row.name)
  end,
}
