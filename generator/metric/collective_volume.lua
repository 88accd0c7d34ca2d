-- collective_volume: the bytes of each collective's messages, of the calls with known bytes; the others
-- are counted.
local per_collective = require "profile.per_collective"

return per_collective.metric {
  columns = { { key = "bytes", title = "bytes" }, { key = "calls", title = "calls" },
    { key = "calls_without_bytes", title = "calls without bytes" } },
  row = function(calls)
    local sized, without = per_collective.sized(calls)
    if #sized == 0 then return nil, per_collective.no_bytes end
    local bytes = 0
    for _, call in ipairs(sized) do bytes = bytes + call.bytes end
    return { bytes = bytes, calls = #sized, calls_without_bytes = without }
  end,
}
