-- network: the interfaces of a machine that are up, and their rates, from files as in /sys/class.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local network = require "machine.network"

local TestNetwork = lib.with_folder(lib.scratch)

-- Writes files, path -> line.
function TestNetwork:write(files)
  for path, line in pairs(files) do
    assert(file.make_folder(self.folder .. "/" .. path:match("^(.*)/")))
    lib.write(self.folder .. "/" .. path, line .. "\n")
  end
end

function TestNetwork:test_interfaces_that_are_up()
  self:write { ["net/eth0/operstate"] = "up", ["net/eth0/speed"] = "10000", ["net/eth0/device/x"] = "",
    ["net/eth1/operstate"] = "down", ["net/eth1/speed"] = "1000", ["net/lo/operstate"] = "up",
    ["net/br0/operstate"] = "up", ["net/br0/bridge/x"] = "", ["net/veth1/operstate"] = "up",
    ["net/veth1/brport/x"] = "", ["net/eth2/operstate"] = "up", ["net/eth2/brport/x"] = "",
    ["net/eth2/device/x"] = "" }
  lu.assertEquals(network.interfaces(self.folder), { { interface = "eth0", mbit_per_s = 10000 },
    { interface = "eth2" } })
end

-- Interfaces of containers, which need not be ports of a bridge, come and go.
function TestNetwork:test_devices_alone_if_there_are_any()
  self:write { ["net/eth0/operstate"] = "up", ["net/cali1/operstate"] = "up" }
  lu.assertEquals(network.interfaces(self.folder), { { interface = "cali1" }, { interface = "eth0" } })
  self:write { ["net/eth0/device/x"] = "" }
  lu.assertEquals(network.interfaces(self.folder), { { interface = "eth0" } })
end

function TestNetwork:test_a_rate_that_is_unknown()
  self:write { ["net/a/operstate"] = "up", ["net/a/speed"] = "-1", ["net/b/operstate"] = "up" }
  lu.assertEquals(network.interfaces(self.folder), { { interface = "a" }, { interface = "b" } })
end

function TestNetwork:test_ports_of_infiniband()
  self:write { ["infiniband/mlx5_0/ports/1/state"] = "4: ACTIVE",
    ["infiniband/mlx5_0/ports/1/rate"] = "200 Gb/sec (4X HDR)",
    ["infiniband/mlx5_1/ports/1/state"] = "1: DOWN", ["infiniband/mlx5_1/ports/1/rate"] = "10 Gb/sec (4X)" }
  lu.assertEquals(network.interfaces(self.folder), { { interface = "mlx5_0:1", mbit_per_s = 200000 } })
end

function TestNetwork.test_a_machine_without_a_network()
  lu.assertEquals(network.interfaces("/nonexistent"), {})
  lu.assertEquals(type(network.interfaces()), "table")
end

return require "suites" { { "TestNetwork", TestNetwork } }
