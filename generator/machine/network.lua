-- The network of a machine: the interfaces that are up, with their rates, for the provenance of rows from
-- several nodes.
local file = require "core.file"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local network = {}

-- The first line of a file of /sys; nil if there is none, or its driver has no value.
local function first_line(path)
  local handle <close> = io.open(path)
  return handle and handle:read("l") or nil
end

-- Whether an interface does not leave this machine: its loopback, a bridge, or a port of a bridge that is no
-- device, as those of containers.
local function is_inside(path)
  return path:find("/lo$") or file.exists(path .. "/bridge")
    or file.exists(path .. "/brport") and not file.exists(path .. "/device")
end

-- Adds an Ethernet interface, if it is up.
local function add_ethernet(out, folder, name)
  local path = folder .. "/" .. name
  if is_inside(path) or first_line(path .. "/operstate") ~= "up" then return end
  local rate = math.tointeger(tonumber(first_line(path .. "/speed") or ""))
  out[#out + 1] = { interface = name, mbit_per_s = rate and rate > 0 and rate or nil,
    is_device = file.exists(path .. "/device") }
end

-- Adds the active ports of an InfiniBand device, with rates such as "100 Gb/sec (4X EDR)".
local function add_infiniband(out, folder, name)
  local ports = ("%s/%s/ports"):format(folder, name)
  for _, port in ipairs(file.list(ports) or {}) do
    local path = ports .. "/" .. port
    local rate = tonumber((first_line(path .. "/rate") or ""):match("^([%d.]+) Gb/sec"))
    if (first_line(path .. "/state") or ""):find("ACTIVE", 1, true) then
      out[#out + 1] = { interface = name .. ":" .. port,
        mbit_per_s = rate and math.floor(rate * 1000 + 0.5) or nil, is_device = true }
    end
  end
end

-- { interface, mbit_per_s (nil: unknown) }..., in order of their names: those of devices; without any, as in
-- a container, all. The others of a node come and go with its containers. `root`: nil, or the folder in place
-- of /sys/class.
function network.interfaces(root)
  local all = {}
  for class, add in pairs { net = add_ethernet, infiniband = add_infiniband } do
    local folder = (root or "/sys/class") .. "/" .. class
    for _, name in ipairs(file.list(folder) or {}) do add(all, folder, name) end
  end
  local devices = sequences.filter(all, function(of) return of.is_device end)
  local out = sequences.map(devices[1] and devices or all, function(of)
    return { interface = of.interface, mbit_per_s = of.mbit_per_s }
  end)
  return ordering.sort(out, ordering.by "interface")
end

return network
