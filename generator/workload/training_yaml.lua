-- The YAML of a training script as a workload: transformer layers as GEMMs, and the collectives of DDP or
-- FSDP.
--
--   training_yaml.read(text, path) -> value, notes
--
-- `value` is what a workload's Lua file returns (workloads/small.lua). `notes`: texts with the keys that have
-- no effect on it, and with those of the model's parts that it lacks. Wrong input raises an error with the
-- file, the line and the key.
local fail = require "base.fail"
local json = require "codec.json"
local limits = require "workload.limits"
local optional = require "base.optional"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local training_yaml = {}

local MOST_SHOWN = 60 -- bytes of a wrong value
local MIB = 1 << 20
local BUCKET_CAP_MB = 25 -- DistributedDataParallel's default

-- The sections with effects, and all their keys: "used", "none" (no effect), or "lacking" (a part of the
-- model that a workload does not have).
local SECTIONS = {
  training = { batch_size = "used", gradient_accumulation = "used", mixed_precision = "used", epochs = "none",
    max_steps = "none", grad_clip_norm = "none", output_dir = "none", log_interval = "none",
    additional_compute_streams = "lacking", lightweight_op_waves = "lacking" },
  dataset = { sequence_length = "used", num_samples = "none", seed = "none", dense_dim = "lacking",
    num_dense_features = "lacking", sparse_features = "lacking", vocab_size = "lacking" },
  model = { model_dim = "used", num_layers = "used", mlp_hidden_dim = "used", dropout = "none",
    num_heads = "lacking", dense_dim = "lacking", embedding_dim = "lacking", num_dense_features = "lacking",
    vocab_size = "lacking" },
  fsdp = { sharding_strategy = "used", backward_prefetch = "none", forward_prefetch = "none",
    limit_all_gathers = "none", param_init_device = "none", sync_module_states = "none",
    use_orig_params = "none" },
  distributed = { mode = "used", bucket_cap_mb = "used", backend = "none", broadcast_buffers = "none",
    find_unused_parameters = "none", gradient_as_bucket_view = "none", static_graph = "none",
    timeout = "none" },
}

-- The sections without effect, with any keys.
local WITHOUT_EFFECT = sequences.set { "compile", "dataloader", "logging", "optimizer", "profiling",
  "scheduler", "streams", "tracelens" }

local DTYPES = { bf16 = "bfloat16", bfloat16 = "bfloat16", fp16 = "float16", float16 = "float16",
  fp32 = "float32", float32 = "float32", tf32 = "float32", none = "float32" }
DTYPES["false"] = "float32" -- no
local MODES = { ddp = "ddp", fsdp = "fsdp" }
local SHARDING = { full_shard = "reduce_scatter", no_shard = "allreduce" }

-- ---- places ------------------------------------------------------------------------------------

-- The number of the line with a section, or with its key, which the decoded values lack. A key of a flow
-- mapping has that of the section.
local function line_of(text, section, key)
  local number, found = 0, nil
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    local indent, name = line:match("^(%s*)[\"']?([%w_.-]+)[\"']?%s*:")
    if indent == "" then
      if found then return found end
      if name == section then found = number end
    elseif found and key and name == key then
      return number
    end
  end
  return found or 1
end

local function reject(from, section, key, message, ...)
  local name = key and section .. "." .. key or section
  fail.input("%s:%d: %s: %s", from.path, line_of(from.text, section, key), name, message:format(...))
end

local function shown(value)
  if value == json.null then return "null" end
  return fail.cut(tostring(value):gsub("%c", " "), MOST_SHOWN)
end

local function names_of(known) return table.concat(ordering.sorted_keys(known), ", ") end

-- ---- reading -----------------------------------------------------------------------------------

local function is_mapping(value) return type(value) == "table" and value ~= json.null and #value == 0 end

local function parse(text, path)
  local yaml = optional "core.yaml"
  if not yaml then fail.work("%s: built without libyaml (Debian: libyaml-dev)", path) end
  local found, message = yaml.decode(text, json.null)
  if is_mapping(found) then return found end
  fail.input("%s: %s", path, message or "is not a mapping of sections such as model: and training:")
end

-- Rejects unknown sections and keys. Returns the sections; those that are missing or empty are {}.
local function sections_of(from, found)
  local sections = {}
  for _, name in ipairs(ordering.sorted_keys(found)) do
    local known, value = SECTIONS[name], found[name]
    if not known and not WITHOUT_EFFECT[name] then
      reject(from, tostring(name), nil, "unknown section; valid: %s, %s", names_of(SECTIONS),
        names_of(WITHOUT_EFFECT))
    end
    if known and value ~= json.null and not is_mapping(value) then
      reject(from, name, nil, "a mapping is required")
    end
    if value == json.null then value = {} end
    sections[name] = value -- without effect: maybe a scalar, as in `compile: true`
    for _, key in ipairs(known and ordering.sorted_keys(sections[name]) or {}) do
      if not known[key] then
        reject(from, name, tostring(key), "unknown key; valid: %s", names_of(known))
      end
    end
  end
  for name in pairs(SECTIONS) do sections[name] = sections[name] or {} end
  return sections
end

local function whole(from, section, key, default, most)
  local value = from.sections[section][key]
  if value == nil then value = default end
  if value == nil then reject(from, section, key, "is missing; a whole number is required") end
  if math.type(value) ~= "integer" or value < 1 or value > most then
    reject(from, section, key, "%s is impossible; a whole number from 1 to %d is required", shown(value),
      most)
  end
  return value
end

local function one_of(from, section, key, default, known)
  local value = from.sections[section][key]
  if value == nil or value == json.null then value = default end
  local found = known[tostring(value):lower()]
  if not found then
    reject(from, section, key, "%s cannot be a part of a workload; valid: %s", shown(value), names_of(known))
  end
  return found
end

-- ---- the workload ------------------------------------------------------------------------------

local function gradients_of(from)
  local has_fsdp = next(from.sections.fsdp) ~= nil
  local mode = one_of(from, "distributed", "mode", has_fsdp and "fsdp" or "ddp", MODES)
  if mode == "fsdp" then
    return { collective = one_of(from, "fsdp", "sharding_strategy", "full_shard", SHARDING) }, mode
  end
  local cap = whole(from, "distributed", "bucket_cap_mb", BUCKET_CAP_MB, 1024)
  return { collective = "allreduce", bucket_bytes = cap * MIB }, mode
end

-- The rows of a rank's input in a step, and the number of micro-batches.
local function tokens_of(from)
  local batch = whole(from, "training", "batch_size", nil, limits.longest)
  local length = whole(from, "dataset", "sequence_length", nil, limits.longest)
  local micro_batches = whole(from, "training", "gradient_accumulation", 1, 64)
  local tokens = batch * length * micro_batches
  if tokens > limits.longest then
    reject(from, "training", "batch_size", "%d x %d tokens x %d micro-batches are %d rows of a step; at most"
      .. " %d are possible", batch, length, micro_batches, tokens, limits.longest)
  end
  return tokens, micro_batches
end

local function layers_of(from)
  local function size(key) return whole(from, "model", key, nil, limits.longest // 3) end
  local hidden, inner = size "model_dim", size "mlp_hidden_dim"
  return { { name = "layer", copies = whole(from, "model", "num_layers", nil, 1000), gemms = {
    { name = "attention.qkv", n = 3 * hidden, k = hidden },
    { name = "attention.out", n = hidden, k = hidden },
    { name = "mlp.up", n = inner, k = hidden },
    { name = "mlp.down", n = hidden, k = inner } } } }
end

local function is_empty(value) return type(value) == "table" and next(value) == nil end

-- The list of the keys of one kind, with their sections; of sections without any effect the names.
local function keys_of(from, kind, without)
  local out = {}
  for _, section in ipairs(ordering.sorted_keys(from.sections)) do
    local known = SECTIONS[section]
    if not known or section == without then
      if kind == "none" and not is_empty(from.sections[section]) then out[#out + 1] = section end
    else
      for _, key in ipairs(ordering.sorted_keys(from.sections[section])) do
        if known[key] == kind then out[#out + 1] = section .. "." .. key end
      end
    end
  end
  return out
end

local function notes_of(from, mode)
  local notes = {}
  local without = keys_of(from, "none", mode == "ddp" and "fsdp" or nil)
  if mode == "fsdp" and from.sections.distributed.bucket_cap_mb ~= nil then
    without[#without + 1] = "distributed.bucket_cap_mb"
  end
  if #without > 0 then notes[1] = "no effect on the workload: " .. table.concat(without, ", ") end
  local lacking = keys_of(from, "lacking")
  if #lacking > 0 then
    notes[#notes + 1] = "parts of the model that the workload lacks (embeddings, products of attention,"
      .. " other streams): " .. table.concat(lacking, ", ")
  end
  return notes
end

-- The name of a file without folder and ending, as the name of a workload.
local function name_of(path)
  local name = path:match("([^/]*)$"):gsub("%.ya?ml$", ""):gsub("[^%w._-]", "_")
  return name ~= "" and name:sub(1, 40) or "training"
end

function training_yaml.read(text, path)
  local from = { text = text, path = path }
  from.sections = sections_of(from, parse(text, path))
  local gradients, mode = gradients_of(from)
  local tokens, micro_batches = tokens_of(from)
  local dtype = one_of(from, "training", "mixed_precision", "none", DTYPES)
  return { name = name_of(path), dtype = dtype, tokens = tokens, micro_batches = micro_batches,
    layers = layers_of(from), gradients = gradients }, notes_of(from, mode)
end

return training_yaml
