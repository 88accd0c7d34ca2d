-- gentables lua fusion_rows.lua ROWS.csv: a fused row has the times of the separate pair and of the call
-- alone; a candidate that cannot fuse has the pair as its row; and each has a row without an epilogue.
local rows = require "core.rows"

local of = {}
for _, row in ipairs(assert(rows.records(arg[1]))) do of[row.strategy .. " " .. row.fusion] = row end
local function check(name, fused)
  local row, plain = of[name .. " RESIDUAL_RMS_NORM"], of[name .. " NONE"]
  assert(row and plain, name .. ": no row with and without the epilogue")
  assert((row.separate_us ~= nil) == fused, name .. ": the time of the pair")
  assert(row.alone_us and row.alone_us == plain.time_us, name .. ": the time alone")
  assert(not plain.separate_us and not plain.alone_us, name .. ": a row without an epilogue has both")
end
check("ONESHOT", true)
check("PLUGIN_CHUNKED_8192", false)
