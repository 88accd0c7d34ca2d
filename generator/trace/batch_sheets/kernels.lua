-- The sheets kernels_0 ... kernels_n: every GPU event of each rank.
local sequences = require "base.sequences"

local columns = { "uid", "category", "name", "parent", "device", "stream", "ts", "dur", "correlation",
  "External id" }
local PIECE = 10000 -- rows that are fetched at once

return {
  field = "kernels",

  collect = function(rank)
    local out = {}
    repeat
      local piece = rank.analysis:gpu_rows(#out + 1, PIECE)
      for _, row in ipairs(piece) do
        local parent = row.parent ~= "" and row.parent or nil
        out[#out + 1] = { row.uid, row.category, row.name, parent, row.device, row.stream, row.start,
          row.duration, row.link, row.external }
      end
    until #piece < PIECE
    return out
  end,

  make = function(ranks)
    return sequences.map(ranks, function(rank)
      return { name = ("kernels_%d"):format(rank.rank), columns = columns, rows = rank.kernels }
    end)
  end,
}
