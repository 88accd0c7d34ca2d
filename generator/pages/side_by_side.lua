-- Reports, sweeps or runs side by side on a page. The first is the base; each other one is set against it.
--
--   side_by_side.row({ "tokens" }, #labels, function(i) return labels[i], labels[i] .. ": interval" end,
--     function(i) return side_by_side.against(labels, i) end)
--   -> { "tokens", "a", "a: interval", "b", "b: interval", "b against a" }
local fail = require "base.fail"

local side_by_side = {}

-- One label for each of `inputs`, { label =, path = }: those of --label (`given`, one for each input, in
-- their order), else the inputs' own; an input with the label of an earlier one has its path as label.
function side_by_side.labels(inputs, given)
  local out, seen = {}, {}
  if given and #given ~= #inputs then
    fail.input("%d --label for %d inputs; none, or one for each, is required", #given, #inputs)
  end
  for i, input in ipairs(inputs) do
    local label = given and given[i] or input.label
    if seen[label] and not given then label = input.path end
    if label == "" or seen[label] then
      fail.input("label %q of two inputs; different labels are required: --label L, once for each", label)
    end
    seen[label], out[i] = true, label
  end
  return out
end

-- "b against a": the i-th label and that of the base.
function side_by_side.against(labels, i) return ("%s against %s"):format(labels[i], labels[1]) end

-- A row of a table, of its titles or of its cells: `heads`, then the cells that each(i) returns for every
-- one of `count`, then those that against(i) returns for every one but the base. Both return any number of
-- cells, nil for an empty one, and the same number for every row.
function side_by_side.row(heads, count, each, against)
  local row, length = table.move(heads, 1, #heads, 1, {}), #heads
  local function add(...)
    for i = 1, select("#", ...) do row[length + i] = (select(i, ...)) end
    length = length + select("#", ...)
  end
  for i = 1, count do add(each(i)) end
  for i = 2, against and count or 1 do add(against(i)) end
  return row
end

-- A share in percent, with its sign; zero has none.
function side_by_side.signed_percent(share, digits)
  local text = ("%+." .. (digits or 1) .. "f"):format(100 * share)
  return (tonumber(text) == 0 and text:sub(2) or text) .. " %"
end

-- The increase of `time` over `base`, as a cell; nil if either is missing or the base is 0. Cells beyond the
-- share `noise` are marked as better or worse.
function side_by_side.change(base, time, noise, digits)
  if not base or not time or base == 0 then return nil end
  local share = time / base - 1
  return { text = side_by_side.signed_percent(share, digits), value = share,
    class = share > noise and "worse" or share < -noise and "better" or nil }
end

-- The cell of a value that is missing.
function side_by_side.missing() return { text = "missing", class = "missing" } end

-- A cell of text, marked if it differs from the base's `base`; "missing" without a text.
function side_by_side.fact(text, base)
  if not text then return side_by_side.missing() end
  return { text = text, class = text ~= base and "changed" or nil }
end

return side_by_side
