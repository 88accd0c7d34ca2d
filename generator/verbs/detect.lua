-- gentables detect: this machine's processor, MPI and GPUs, and what can be measured on it.
local detection = require "surroundings.detection"
local json = require "codec.json"
local quantities = require "base.quantities"

local function print_line(name, ...)
  io.stdout:write(("%-11s"):format(name), string.format(...), "\n")
end

local function gpus_in_words(gpus)
  if not gpus.sm then return "none: " .. gpus.reason end
  return ("%d x %s (sm%d)%s"):format(gpus.count, gpus.name, gpus.sm,
    gpus.library and "; " .. gpus.library or "")
end

local function print_all(host, gpus, targets)
  print_line("arch", "%s", gpus.sm and ("sm%d"):format(gpus.sm) or "host")
  print_line("processor", "%s, %s, %d GiB of memory; %s", host.cpu, quantities.counted(host.cores, "core"),
    host.memory_gib, host.os)
  print_line("MPI", "%s", host.mpi or "none: " .. host.reason)
  print_line("GPUs", "%s", gpus_in_words(gpus))
  for _, target in ipairs(targets) do
    if target.command then print_line("measurable", "%s, such as: %s", target.arch, target.command) end
  end
  for _, target in ipairs(targets) do
    if target.reason then print_line("not", "%s: %s", target.arch, target.reason) end
  end
end

return {
  summary = "Prints this machine's processor, MPI and GPUs, and what can be measured on it.",
  options = { { name = "json", help = "print JSON" } },
  example = "gentables detect",
  run = function(args)
    local host, gpus = detection.host(), detection.gpus()
    local targets = detection.targets(host, gpus)
    if not args.json then return print_all(host, gpus, targets) end
    io.stdout:write(json.encode { arch = gpus.sm and ("sm%d"):format(gpus.sm) or "host", host = host,
      gpus = gpus, targets = json.array(targets) }, "\n")
  end,
}
