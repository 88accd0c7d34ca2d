-- Shared by tests of core.trace: require "unit.trace.reader.lib".
local core = require "core.trace"
local file = require "core.file"
local lib = {}

function lib.work_path(name)
  file.make_folder(os.getenv("WORK"))
  return os.getenv("WORK") .. "/" .. name
end

function lib.write(path, text)
  assert(file.write(path, text))
  return path
end

function lib.text_of(path) return assert(file.read(path)) end

local function text_of(value)
  if value == nil then return "-" end
  if math.type(value) == "float" then return ("%.17g"):format(value) end
  return (tostring(value):gsub("[\n\t]", " "))
end

local function line(label, row, keys)
  local out = { label }
  for key in keys:gmatch("%S+") do out[#out + 1] = key .. "=" .. text_of(row[key]) end
  return table.concat(out, "\t") .. "\n"
end

-- The events that core.trace reads from the file, one a line | nil, message.
function lib.dump(path, options)
  local trace, why = core.open(path, options)
  if not trace then return nil, why end
  local info = trace:info()
  local out = { line("trace", info,
    "rank world_size base_nanoseconds devices events kept_events gpu_events linked_by") }
  for _, flaw in ipairs(info.flaws) do
    out[#out + 1] = line("flaw", flaw, "name count first_byte first_uid")
  end
  for i = 1, info.kept_events do
    local event = trace:event(i)
    event.parent = event.parent and trace:event(event.parent).uid
    out[#out + 1] = line("event", event, "uid kind name start duration pid tid process_name process_label "
      .. "thread_name link external device stream sequence parent dims types strides concrete")
    if event.collective then
      out[#out + 1] = line("collective", event.collective,
        "name dtype group ranks in_split out_split in_elements out_elements group_size")
    end
  end
  trace:close()
  return table.concat(out)
end

-- The trace of this text | nil, message.
function lib.open(text, options) return core.open(lib.write(lib.work_path("trace.json"), text), options) end

-- The count of each flaw, and the first places.
function lib.flaws(trace)
  local counts, firsts = {}, {}
  for _, flaw in ipairs(trace:info().flaws) do
    counts[flaw.name], firsts[flaw.name] = flaw.count, flaw.first_byte or flaw.first_uid
  end
  return counts, firsts
end

return lib
