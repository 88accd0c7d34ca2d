-- Prints what core.trace reads, a line for each kept event: dump.lua FILE [WORKERS [CHUNK_SIZE]]
local path, workers, chunk_size = arg[1], tonumber(arg[2]), tonumber(arg[3])
local trace, why = require("core.trace").open(path, { workers = workers, chunk_size = chunk_size })
if not trace then
  io.stderr:write("gentables: ", why, "\n")
  os.exit(2)
end

local function told(value)
  if value == nil then return "-" end
  if math.type(value) == "float" then return ("%.17g"):format(value) end
  return (tostring(value):gsub("[\n\t]", " "))
end

local function line(label, row, keys)
  local out = { label }
  for key in keys:gmatch("%S+") do out[#out + 1] = key .. "=" .. told(row[key]) end
  print(table.concat(out, "\t"))
end

local info = trace:info()
line("trace", info, "rank world_size base_nanoseconds devices events kept_events gpu_events linked_by")
for _, flaw in ipairs(info.flaws) do line("flaw", flaw, "name count first_byte first_uid") end
for i = 1, info.kept_events do
  local event = trace:event(i)
  event.parent = event.parent and trace:event(event.parent).uid
  line("event", event, "uid kind name start duration pid tid process_name process_label thread_name link "
    .. "external device stream sequence parent dims types strides concrete")
  if event.collective then
    line("collective", event.collective,
      "name dtype group ranks in_split out_split in_elements out_elements group_size")
  end
end
