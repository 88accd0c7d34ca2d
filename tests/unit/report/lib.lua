-- Shared by the Lua tests of pictures: rows in a folder of their own, and PNGs read back by gnuplot.
local file = require "core.file"
local process = require "core.process"

local lib = {}

local work = assert(os.getenv("WORK"))
os.execute(("rm -rf '%s'"):format(work))
local count = 0

-- A new folder.
function lib.folder()
  count = count + 1
  local path = ("%s/%d"):format(work, count)
  assert(file.make_folder(path))
  return path
end

local header = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)"

-- A benchmark file of TP 2 in a new folder: rows are { tokens, hidden size, strategy, time, fusion (NONE)
-- }, or with `detail` also low, high and bound. Returns its path.
function lib.rows(rows, tp, detail)
  local lines = { header .. (detail and ",low (us),high (us),bound (us),mode,placement" or "") }
  for _, row in ipairs(rows) do
    lines[#lines + 1] = ("%d,bfloat16,%d,%d,%d,%s,%s,allreduce,%.17g"):format(tp or 2, 2 * row[1] * row[2],
      row[1], row[2], row[3], row[5] or "NONE", row[4])
      .. (detail and (",%.17g,%.17g,%.17g,eager,dedicated"):format(row[6], row[7], row[8]) or "")
  end
  local path = ("%s/benchmark.tp%d.sm90.csv"):format(lib.folder(), tp or 2)
  assert(file.write(path, table.concat(lines, "\n") .. "\n"))
  return path
end

function lib.has_gnuplot()
  local child = process.start({ "gnuplot", "--version" })
  if child then child:close(10) end
  return child ~= nil
end

-- The colours of pixels of a PNG as "#rrggbb"; `list`: the pixels, each in the syntax of gnuplot's `every`.
local function read_pixels(path, list)
  local script, out = { 'set table "/dev/stdout"' }, {}
  for i, every in ipairs(list) do
    script[i + 1] = ("plot '%s' binary filetype=png every %s using 1:2:3 with rgbimage"):format(path, every)
  end
  local child = assert(process.start({ "gnuplot", "-d", "/dev/stdin" }))
  assert(child:write(table.concat(script, "\n") .. "\nexit\n", 20))
  while true do
    local line = child:read_line(20)
    if not line then break end
    local r, g, b = line:match("^%s*%S+%s+%S+%s+(%d+)%s+(%d+)%s+(%d+)")
    if r then out[#out + 1] = ("#%02x%02x%02x"):format(r, g, b) end
  end
  child:close(1)
  return out
end

-- Colours at places of a PNG, { { x, y }... } in pixels from the upper left corner.
function lib.pixels(path, places)
  local list = {}
  for i, place in ipairs(places) do
    local x, y = math.floor(place[1]), math.floor(place[2])
    list[i] = ("1:1:%d:%d:%d:%d"):format(x, y, x, y)
  end
  local out = read_pixels(path, list)
  assert(#out == #places, ("%d pixels of %d were read"):format(#out, #places))
  return out
end

-- How often each colour is found in a box of pixels of a PNG, in every fourth pixel of every fourth row.
function lib.colours(path, left, top, right, bottom)
  local every = ("4:4:%.0f:%.0f:%.0f:%.0f"):format(left, top, right, bottom)
  local counts = {}
  for _, colour in ipairs(read_pixels(path, { every })) do counts[colour] = (counts[colour] or 0) + 1 end
  return counts
end

-- Width and height of a PNG in pixels, and pixels per metre by its pHYs chunk.
function lib.measure(path)
  local png = assert(file.read(path))
  assert(png:sub(1, 8) == "\137PNG\r\n\26\n")
  local width, height = (">I4I4"):unpack(png, 17)
  local _, data = png:find("pHYs", 1, true)
  return width, height, (">I4"):unpack(png, data + 1)
end

return lib
