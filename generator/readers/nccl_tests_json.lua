-- The JSON of nccl-tests (-J FILE). Versions 1 to 4 hold what rows need under the same names; a newer one is
-- refused. The file is one long line, so that messages name the field.
local json = require "codec.json"
local nccl_row = require "reading.nccl_row"

local NEWEST = 4

local function is_object(value) return type(value) == "table" and value ~= json.null end

local function check_version(source, document)
  local version = is_object(document) and document.version
  if math.type(version) ~= "integer" or version < 1 then
    source:fail(nil, "has no version; nccl-tests writes \"version\": 1 or later")
  elseif version > NEWEST then
    source:fail(nil, "is of version %d; versions 1 to %d are known", version, NEWEST)
  end
  for _, name in ipairs { "config", "results" } do
    if not is_object(document[name]) then
      source:fail(nil, "has no %s; the run may have been cut off", name)
    end
  end
end

local function devices_of(document)
  local devices = {}
  for i, device in ipairs(is_object(document.config.devices) and document.config.devices or {}) do
    if is_object(device) then
      devices[#devices + 1] = { rank = device.rank or i - 1, group = tostring(device.group or 0),
        host = tostring(device.hostname), id = tostring(device.device_hex),
        name = tostring(device.device_info) }
    end
  end
  return devices
end

-- A run as a result of nccl_row; nil: this half was not run.
local function result_of(source, where, entry)
  if not is_object(entry) then source:fail(nil, "%s is no object", where) end
  local name = source.options.in_place and "in_place" or "out_of_place"
  local half = entry[name]
  if half == json.null then return nil end
  if not is_object(half) then source:fail(nil, "%s has no %s", where, name) end
  if half.cpu_time ~= nil then source:fail(nil, "%s.%s is a time of the CPU (-C 1)", where, name) end
  local wrong = half.nwrong
  return { size = entry.size, count = entry.count, type = entry.type, redop = entry.redop,
    time_us = half.time, wrong = wrong ~= json.null and wrong or nil, strategy = entry.strategy }
end

return function(source)
  local document, message = json.decode(source.text)
  if not document then source:fail(nil, "is no JSON, or cut off: %s", message) end
  check_version(source, document)
  local ranks, devices = nccl_row.ranks(source, devices_of(document))
  local out, graph = { rows = {}, no_time = {} }, document.config.graph
  local run = { world_size = source:world_size(ranks),
    placement = nccl_row.placement(devices),
    mode = math.type(graph) == "integer" and (graph > 0 and "graph" or "eager") or nil }
  for i, entry in ipairs(document.results) do
    local where = ("results[%d]"):format(i - 1)
    local result = result_of(source, where, entry)
    local of_field = setmetatable({ fail = function(self, _, ...)
      source.fail(self, nil, where .. ": " .. select(1, ...), select(2, ...))
    end }, { __index = source })
    if result then
      nccl_row.enter(of_field, nil, result, run, out)
    else
      source:leave_out("not run out of place; --in-place takes the others")
    end
  end
  out.facts = { machine = nccl_row.machine(devices), library = document.nccl_version,
    in_place = source.options.in_place or false }
  return out
end
