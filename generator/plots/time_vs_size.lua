-- The time of every strategy against the message size, with intervals and the physical bound.
local geometry = require "pages.geometry"
local time_over_size = require "pictures.time_over_size"

local function model(slice)
  return time_over_size.model(slice, {
    title = ("Time against message size, %s, %s"):format(slice.placement, slice.fusion),
    y = { label = "time (µs)", ticks = geometry.log_ticks }, better = math.min,
    value = function(_, time_us) return time_us end,
  })
end

return { model = model }
