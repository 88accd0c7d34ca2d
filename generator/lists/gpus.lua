-- GPUs with their peaks, for rooflines: the least time of an op on a GPU, by its FLOPs and bytes.
--
--   name         of --gpu
--   devices      names of the device in traces, without the vendor; a part of a GPU (MIG) has another name
--   multiprocessors  of the whole GPU, as traces count them (of AMD: compute units); another number in a
--                trace is that of a part of it. Absent: unknown
--   memory_gbps  peak of the memory, in GB/s (10^9 bytes)
--   vector, matrix  peaks in TFLOP/s, by precision, without sparsity (data sheets often print those with
--                sparsity, twice as high). Precisions are those of element_types.lua, and tf32. fp4 has the
--                scales of blocks (NVFP4, MXFP4); AMD's sheets round it to 0.1 PFLOP/s. Absent: unknown, or
--                the GPU does not compute in it
--   source       the vendor's document. The present numbers were entered from public texts that quote it
--
-- How to add a GPU: a row. Leave out a peak that its source does not have.
local fail = require "base.fail"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local gpus = {}

local HOPPER = "NVIDIA H100 Tensor Core GPU Architecture, resources.nvidia.com/en-us-tensor-core"
local H100 = "NVIDIA H100 data sheet, nvidia.com/en-us/data-center/h100"
local H200 = "NVIDIA H200 data sheet, nvidia.com/en-us/data-center/h200"
local A100 = "NVIDIA A100 data sheet, nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
  .. "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
local BLACKWELL = "NVIDIA Blackwell data sheet (individual GPUs), nvidia.com/en-us/data-center/hgx"
local AMD_SHEETS = "amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/"
local AMD_BRIEFS = "amd.com/content/dam/amd/en/documents/instinct-tech-docs/product-briefs/"

local function a100(name, device, memory_gbps)
  return { name = name, devices = { device }, multiprocessors = 108, memory_gbps = memory_gbps, source = A100,
    vector = { fp64 = 9.7, fp32 = 19.5 },
    matrix = { fp64 = 19.5, tf32 = 156, bf16 = 312, fp16 = 312, int8 = 624 } }
end

local function mi300(name, devices, memory_gbps, sheet)
  return { name = name, devices = devices, multiprocessors = 304, memory_gbps = memory_gbps,
    source = AMD_SHEETS .. sheet,
    vector = { fp64 = 81.7, fp32 = 163.4 },
    matrix = { fp64 = 163.4, fp32 = 163.4, tf32 = 653.7, bf16 = 1307.4, fp16 = 1307.4, fp8 = 2614.9,
      int8 = 2614.9 } }
end

gpus.list = {
  { name = "H100", devices = { "H100 80GB HBM3" }, multiprocessors = 132, memory_gbps = 3350,
    source = HOPPER .. "; " .. H100,
    vector = { fp64 = 33.5, fp32 = 66.9 },
    matrix = { fp64 = 66.9, tf32 = 494.7, bf16 = 989.4, fp16 = 989.4, fp8 = 1978.9, int8 = 1978.9 } },
  { name = "H100 PCIe", devices = { "H100 PCIe" }, multiprocessors = 114, memory_gbps = 2000,
    source = HOPPER .. "; " .. H100,
    vector = { fp64 = 25.6, fp32 = 51.2 },
    matrix = { fp64 = 51.2, tf32 = 378, bf16 = 756, fp16 = 756, fp8 = 1513, int8 = 1513 } },
  { name = "H100 NVL", devices = { "H100 NVL" }, memory_gbps = 3900, source = H100,
    vector = { fp64 = 30, fp32 = 60 },
    matrix = { fp64 = 60, tf32 = 417.5, bf16 = 835.5, fp16 = 835.5, fp8 = 1670.5, int8 = 1670.5 } },
  { name = "H200", devices = { "H200" }, multiprocessors = 132, memory_gbps = 4800, source = H200,
    vector = { fp64 = 34, fp32 = 67 },
    matrix = { fp64 = 67, tf32 = 494.5, bf16 = 989.5, fp16 = 989.5, fp8 = 1979, int8 = 1979 } },
  { name = "H200 NVL", devices = { "H200 NVL" }, memory_gbps = 4800, source = H200,
    vector = { fp64 = 30, fp32 = 60 },
    matrix = { fp64 = 60, tf32 = 417.5, bf16 = 835.5, fp16 = 835.5, fp8 = 1670.5, int8 = 1670.5 } },
  { name = "B200", devices = { "B200" }, multiprocessors = 148, memory_gbps = 7700, source = BLACKWELL,
    vector = { fp64 = 37, fp32 = 75 },
    matrix = { fp64 = 37, tf32 = 1100, bf16 = 2250, fp16 = 2250, fp8 = 4500, fp4 = 9000, int8 = 4500 } },
  { name = "GB200", devices = { "GB200" }, memory_gbps = 8000, source = BLACKWELL,
    vector = { fp64 = 40, fp32 = 80 },
    matrix = { fp64 = 40, tf32 = 1250, bf16 = 2500, fp16 = 2500, fp8 = 5000, fp4 = 10000, int8 = 5000 } },
  a100("A100 SXM 80GB", "A100-SXM4-80GB", 2039),
  a100("A100 SXM 40GB", "A100-SXM4-40GB", 1555),
  a100("A100 PCIe 80GB", "A100 80GB PCIe", 1935),
  a100("A100 PCIe 40GB", "A100-PCIE-40GB", 1555),
  { name = "L40S", devices = { "L40S" }, multiprocessors = 142, memory_gbps = 864,
    source = "NVIDIA L40S data sheet, nvidia.com/en-us/data-center/l40s", vector = { fp32 = 91.6 },
    matrix = { tf32 = 183, bf16 = 362.05, fp16 = 362.05, fp8 = 733, int8 = 733 } },
  { name = "L4", devices = { "L4" }, multiprocessors = 58, memory_gbps = 300,
    source = "NVIDIA L4 data sheet, resources.nvidia.com/en-us-gpu-resources/l4-tensor-datasheet",
    vector = { fp32 = 30.3 },
    matrix = { tf32 = 60, bf16 = 121, fp16 = 121, fp8 = 242.5, int8 = 242.5 } },
  mi300("MI300X", { "Instinct MI300X", "Instinct MI300X VF", "Instinct MI300X HF" }, 5300,
    "amd-instinct-mi300x-data-sheet.pdf"),
  mi300("MI325X", { "Instinct MI325X", "Instinct MI325X VF" }, 6000, "amd-instinct-mi325x-datasheet.pdf"),
  { name = "MI300A", devices = { "Instinct MI300A" }, multiprocessors = 228, memory_gbps = 5300,
    source = AMD_SHEETS .. "amd-instinct-mi300a-data-sheet.pdf", vector = { fp64 = 61.3, fp32 = 122.6 },
    matrix = { fp64 = 122.6, fp32 = 122.6, tf32 = 490.3, bf16 = 980.6, fp16 = 980.6, fp8 = 1961.2,
      int8 = 1961.2 } },
  { name = "MI350X", devices = { "Instinct MI350X", "Instinct MI350X VF" }, multiprocessors = 256,
    memory_gbps = 8000,
    source = AMD_BRIEFS .. "amd-instinct-mi350x-gpu-brochure.pdf", vector = { fp64 = 72.1, fp32 = 144.2 },
    matrix = { fp64 = 72.1, fp32 = 144.2, bf16 = 2309.6, fp16 = 2309.6, fp8 = 4614, fp4 = 9200,
      int8 = 4614 } },
  { name = "MI355X", devices = { "Instinct MI355X", "Instinct MI355X VF" }, multiprocessors = 256,
    memory_gbps = 8000,
    source = AMD_BRIEFS .. "amd-instinct-mi355x-gpu-brochure.pdf", vector = { fp64 = 78.6, fp32 = 157.3 },
    matrix = { fp64 = 78.6, fp32 = 157.3, bf16 = 2516.6, fp16 = 2516.6, fp8 = 5033.2, fp4 = 10100,
      int8 = 5033.2 } },
}

local MOST_NAMED = 4 -- names in a message

-- ---- by name -----------------------------------------------------------------------------------

-- The letters and digits of a name in lower case, without its vendor.
local function plain(name)
  return (name:lower():gsub("^nvidia%s+", ""):gsub("^amd%s+", ""):gsub("^tesla%s+", ""):gsub("[^%w]", ""))
end

-- The number of letters to insert, remove or replace to make `b` of `a`.
local function distance(a, b)
  local row = {}
  for k = 0, #b do row[k] = k end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for k = 1, #b do
      local replaced = corner + (a:byte(i) == b:byte(k) and 0 or 1)
      corner, row[k] = row[k], math.min(row[k] + 1, row[k - 1] + 1, replaced)
    end
  end
  return row[#b]
end

-- The number of letters with which both begin.
local function common(a, b)
  local count = 0
  while count < #a and a:byte(count + 1) == b:byte(count + 1) do count = count + 1 end
  return count
end

-- The names of the GPUs that are most like this one, as a text: by their beginning, then by their letters.
function gpus.nearest(name)
  local wanted = plain(name)
  local order = sequences.map(gpus.list, function(row, place)
    local own = plain(row.name)
    return { name = row.name, common = common(wanted, own), distance = distance(wanted, own), place = place }
  end)
  ordering.sort(order, ordering.by("-common", "distance", "place"))
  return table.concat(sequences.field(order, "name"), ", ", 1, MOST_NAMED)
end

-- The row of a device by its name in a trace; nil: the list does not have it.
function gpus.of_device(device)
  local wanted = plain(device)
  for _, row in ipairs(gpus.list) do
    for _, name in ipairs(row.devices) do
      if plain(name) == wanted then return row end
    end
  end
end

local function names_of(rows) return table.concat(sequences.field(rows, "name"), ", ") end

-- What follows this beginning (as of `plain`) in a name; nil: it does not begin so.
local function rest_of(name, beginning)
  for at = 1, #name do
    if plain(name:sub(1, at)) == beginning then return name:sub(at + 1) end
  end
end

-- The row of a name that a user gives: that of the list, of a device, or the only one that begins so and goes
-- on with another word, or with X alone. nil, the names of those that begin so, or the nearest ones.
function gpus.find(name)
  local wanted = plain(name)
  local beginning = sequences.filter(gpus.list, function(row) return rest_of(row.name, wanted) ~= nil end)
  local found = sequences.find(beginning, function(row) return plain(row.name) == wanted end)
    or gpus.of_device(name)
  if found then return found end
  local rest = #beginning == 1 and rest_of(beginning[1].name, wanted) or ""
  if rest:find "^ " or rest == "X" then return beginning[1] end
  if #beginning == 0 then return nil, gpus.nearest(name) end
  return nil, names_of(beginning)
end

-- ---- of traces ---------------------------------------------------------------------------------

local selected -- of all traces; nil: each trace has its own

-- The GPU of all traces from now on, by its name; nil: that of each trace. Raises for an unknown name.
function gpus.select(name)
  selected = nil
  if not name then return end
  local row, others = gpus.find(name)
  if not name:find "%w" then fail.input("--gpu: the name of a GPU is required, such as %s", others) end
  if not row then fail.input("--gpu: no peaks of %s are known; nearest are: %s", name, others) end
  selected = row
end

-- The GPU of a trace, by its info (trace/analysis/trace_lua.cpp); nil: unknown, or only a part of it.
function gpus.of(info)
  local row = selected or info.device_name and gpus.of_device(info.device_name)
  if not row or row == selected then return row or nil end
  local count, whole = info.multiprocessors, row.multiprocessors
  return (not count or not whole or count == whole) and row or nil
end

-- The GPUs of ranks (their infos), each once; false for those that are unknown.
local function each_of(infos)
  return sequences.distinct(sequences.map(infos, function(info) return gpus.of(info) or false end))
end

-- The GPU of all ranks; nil: it is unknown, or they have several.
function gpus.of_ranks(infos)
  local found = each_of(infos)
  return #found == 1 and found[1] or nil
end

-- The name of the selected GPU; "": none is selected.
function gpus.selected() return selected and selected.name or "" end

-- Devices with one multiprocessor are the CPUs of gentables workload.
local function missing(info)
  local device, count = info.device_name, info.multiprocessors
  if not device or count == 1 or gpus.of(info) then return nil end
  local whole = gpus.of_device(device)
  local part = whole and ("has %d multiprocessors, the whole GPU %d"):format(count, whole.multiprocessors)
    or device:find(" MIG ", 1, true) and "is a part of a GPU"
  if part then
    return ("%s %s, so sheets have no roofline; --gpu NAME takes the peaks of a whole GPU"):format(device,
      part)
  end
  if not device:find "%d" then -- a product's name has a number
    return ("the traces do not name their GPU (%q), so sheets have no roofline; --gpu NAME gives it, such as"
      .. " %s"):format(device, gpus.nearest(device))
  end
  return ("no peaks of the GPU %s are known, so sheets have no roofline; --gpu NAME takes those of another,"
    .. " nearest are: %s"):format(device, gpus.nearest(device))
end

-- A line on each GPU of these traces (their infos) without known peaks; none on traces that name no GPU.
-- over_ranks: they share sheets; also a line on ranks with several GPUs.
function gpus.missing(infos, over_ranks)
  local lines = sequences.distinct(sequences.map(infos, missing))
  local known = sequences.filter(each_of(infos), function(row) return row end)
  if over_ranks and #known > 1 then
    lines[#lines + 1] = ("ranks have several GPUs (%s), so sheets over ranks have no roofline; --gpu NAME"
      .. " selects one"):format(names_of(known))
  end
  return lines
end

-- The GPUs of these traces (their infos) with the peaks that count, for a reader; nil: none.
function gpus.in_words(infos)
  local known = sequences.filter(each_of(infos), function(row) return row end)
  if #known == 0 then return nil end
  local devices = sequences.distinct(sequences.map(infos, function(info) return info.device_name end))
  if not selected or #devices == 0 then return names_of(known) .. (selected and " (--gpu)" or "") end
  return ("%s (--gpu); %s of %s"):format(selected.name, #infos == 1 and "the trace is" or "the traces are",
    table.concat(devices, ", "))
end

-- ---- the roofline ------------------------------------------------------------------------------

-- The peak of a GPU in TFLOP/s for a unit and precision, as "matrix_bf16"; nil: unknown. Products in fp32 or
-- fp64 run on the vector unit of a GPU without matrix units for them. Kernels of vectors in 16 bits count
-- with the peak of fp32, in which PyTorch's compute.
function gpus.peak(gpu, spec)
  local unit, precision = (spec or ""):match("^(%l+)_(%w+)$")
  if unit == "matrix" then
    local on_vectors = precision == "fp32" or precision == "fp64"
    return gpu.matrix[precision] or on_vectors and gpu.vector[precision] or nil
  elseif unit == "vector" then
    return gpu.vector[(precision == "bf16" or precision == "fp16") and "fp32" or precision]
  end
end

-- The least time of an op, in µs, and "compute" or "memory", what bounds it; nil: its bytes, or the peak for
-- its FLOPs, are unknown. spec: as of gpus.peak.
function gpus.bound(gpu, flops, bytes, spec)
  local peak = gpus.peak(gpu, spec)
  if not bytes or not (peak or flops == 0) then return nil end
  local memory_us = bytes / (gpu.memory_gbps * 1e3)
  local compute_us = flops == 0 and 0.0 or flops / (peak * 1e6)
  if compute_us > memory_us then return compute_us, "compute" end
  return memory_us, "memory"
end

return gpus
