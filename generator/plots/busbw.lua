-- Bus bandwidth, as nccl-tests defines it, against the message size.
local geometry = require "pages.geometry"
local lists = require "lists.lists"
local time_over_size = require "pictures.time_over_size"

local BYTES_PER_US_IN_GBPS = 1e-3

local function model(slice)
  local factor_of = lists.find("ops", slice.op).bus_factor
  if not factor_of then return nil, ("busbw is not defined for %s"):format(slice.op) end
  local factor = factor_of(slice.tp)
  return time_over_size.model(slice, {
    title = ("Bus bandwidth, %s, %s"):format(slice.placement, slice.fusion),
    y = { label = "busbw (GB/s)", ticks = geometry.log_ticks }, better = math.max,
    value = function(row, time_us) return row.size_bytes / time_us * BYTES_PER_US_IN_GBPS * factor end,
    note = ("busbw = message size / time × %.4g, the factor of %s over %d ranks."):format(factor, slice.op,
      slice.tp),
  })
end

return { model = model }
