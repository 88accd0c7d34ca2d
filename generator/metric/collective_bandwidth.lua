-- collective_bandwidth: bytes over time of each collective in GB/s (algbw), and the same as traffic of a link
-- (busbw). A kernel's time includes its waiting for other ranks; if the files of several ranks have the same
-- call, its shortest kernel counts.
local collective = require "profile.collective"
local per_collective = require "profile.per_collective"

-- Bytes, bytes that a link carries (nil: unknown for some call), time in ns.
local function sums(calls)
  local bytes, link_bytes, time_ns = 0, 0, 0
  for _, call in ipairs(calls) do
    local factor = collective.bus_factor(call.name, call.group_size)
    bytes, time_ns = bytes + call.bytes, time_ns + call.stop - call.start
    link_bytes = link_bytes and factor and link_bytes + call.bytes * factor
  end
  return bytes, link_bytes, time_ns
end

return per_collective.metric {
  match_ranks = true,
  columns = { { key = "algbw_gbps", title = "algbw (GB/s)" }, { key = "busbw_gbps", title = "busbw (GB/s)" },
    { key = "share_of_peak", title = "share of peak" }, { key = "calls", title = "calls" } },
  row = function(calls, args)
    local sized, without = per_collective.sized(calls)
    if #sized == 0 then return nil, per_collective.no_bytes end
    local bytes, link_bytes, time_ns = sums(sized)
    if time_ns == 0 then return nil, "collectives with a time above zero" end
    local peak, busbw = args.peak_gbps, link_bytes and link_bytes / time_ns
    return { algbw_gbps = bytes / time_ns, busbw_gbps = busbw or nil, calls = #sized,
      calls_without_bytes = without, bytes = bytes, time_ms = time_ns / 1e6,
      share_of_peak = peak and busbw and busbw / peak }
  end,
}
