-- memory_bandwidth: the bytes of copies over their time, in GB/s, of the copies with known bytes. No file has
-- the bytes that kernels read and write.
local per_rank = require "profile.per_rank"

-- Sums over the copies with bytes: of all, and by name.
local function sums(copies)
  local all, by_name = { bytes = 0, time_ns = 0, copies = 0 }, {}
  for i = 1, #copies.start do
    if copies.bytes[i] >= 0 then
      local name = copies.name[i]
      by_name[name] = by_name[name] or { bytes = 0, time_ns = 0, copies = 0 }
      for _, sum in ipairs { all, by_name[name] } do
        sum.bytes = sum.bytes + copies.bytes[i]
        sum.time_ns = sum.time_ns + copies.stop[i] - copies.start[i]
        sum.copies = sum.copies + 1
      end
    end
  end
  return all, by_name
end

return per_rank.metric {
  value = function(rank, args)
    local all, by_name = sums(rank.copies)
    if all.copies == 0 then return nil, "copies with known bytes: it has none" end
    if all.time_ns == 0 then
      return nil, "copies with a time above zero: all are shorter than the clock's step"
    end
    local gbps, peak = all.bytes / all.time_ns, args.peak_gbps
    return gbps, { bytes = all.bytes, copies = all.copies, by_copy = by_name,
      copies_without_bytes = #rank.copies.start - all.copies, share_of_peak = peak and gbps / peak }
  end,
}
