-- What a message of a size costs with every strategy, how sure that is, and how far it is from what is
-- possible.
local layout = require "pages.layout"
local sizes = require "pictures.time_over_size"

local function model(slice)
  return sizes.model(slice, {
    title = ("Time against message size, TP %d, %s"):format(slice.tp, slice.fusion),
    y = { label = "time (µs)", ticks = layout.log_ticks }, better = math.min,
    value = function(_, time_us) return time_us end,
  })
end

return { model = model }
