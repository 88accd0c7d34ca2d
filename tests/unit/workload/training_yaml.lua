-- The YAML of a training script becomes a workload: sizes, layers, batch and precision become GEMMs, DDP or
-- FSDP the collectives; the notes list every other key, and unknown ones are rejected with file and line.
local luaunit = require "luaunit"
local description = require "workload.description"
local fail = require "base.fail"
local steps = require "workload.steps"
local training_yaml = require "workload.training_yaml"

if not require "base.optional" "core.yaml" then require "skip" "built without libyaml" end

-- The keys of the pipeline's gemm_test_1.yaml that matter, and some others.
local WHOLE = [[
logging:
  level: INFO
training:
  epochs: 1
  batch_size: 512
  gradient_accumulation: 4
  mixed_precision: bf16
  additional_compute_streams: 4
optimizer: {lr: 0.0002, betas: [0.9, 0.985]}
dataset:
  num_samples: 200000
  sequence_length: 176
  vocab_size: 350000
model:
  vocab_size: 350000
  model_dim: 1024
  num_heads: 16
  num_layers: 20
  dropout: 0.1
  mlp_hidden_dim: 4608
fsdp:
  sharding_strategy: full_shard
  forward_prefetch: true
distributed:
  backend: nccl
  mode: ddp
  bucket_cap_mb: 32
streams:
  high_priority:
  - allreduce
]]

-- All required keys.
local SHORT = [[
model: {model_dim: 8, num_layers: 1, mlp_hidden_dim: 16}
training: {batch_size: 2}
dataset: {sequence_length: 3}
]]

local function with(before, after)
  local at, last = WHOLE:find(before, 1, true)
  luaunit.assertNotNil(at, before)
  return WHOLE:sub(1, at - 1) .. after .. WHOLE:sub(last + 1)
end

-- The message of the error about this text.
local function refusal(text)
  local is_read, problem = pcall(description.parse, text, "run/t.yaml")
  luaunit.assertFalse(is_read)
  luaunit.assertTrue(fail.is_failure(problem), tostring(problem))
  luaunit.assertEquals(problem.code, 2)
  return problem.message
end

local function refused(text, pattern) luaunit.assertStrMatches(refusal(text), pattern .. ".*") end

local TestTrainingYaml = {}

function TestTrainingYaml.test_ddp_all_reduces_buckets()
  local workload = description.parse(WHOLE, "run/gemm test_1.yaml")
  luaunit.assertEquals(workload.name, "gemm_test_1")
  luaunit.assertEquals(workload.tokens, 512 * 176 * 4)
  luaunit.assertEquals(workload.micro_batches, 4)
  luaunit.assertEquals(workload.dtype, { host = "bfloat16", cuda = "bfloat16" })
  luaunit.assertEquals(workload.gradients, { collective = "allreduce", bucket_bytes = 32 << 20 })
  luaunit.assertEquals(#workload.layers, 20)
  local sizes = {}
  for i, gemm in ipairs(workload.layers[20].gemms) do sizes[i] = { gemm.name, gemm.n, gemm.k } end
  luaunit.assertEquals(sizes, { { "attention.qkv", 3072, 1024 }, { "attention.out", 1024, 1024 },
    { "mlp.up", 4608, 1024 }, { "mlp.down", 1024, 4608 } })
  local program = steps.of(workload, 8, "cuda")
  luaunit.assertEquals(#program.gemms, 20 * 4 * 3 * 4)
  local elements = 0
  for _, line in ipairs(program.collectives) do
    luaunit.assertStrContains(line, "kind=allreduce")
    elements = elements + tonumber(line:match("elements=(%d+)"))
  end
  luaunit.assertEquals(elements, 20 * (4 * 1024 * 1024 + 2 * 1024 * 4608)) -- all weights, once
end

function TestTrainingYaml.test_fsdp_spreads_weights()
  for _, text in ipairs { with("mode: ddp", "mode: fsdp"), with("  mode: ddp\n", "") } do
    local workload = description.parse(text, "t.yaml")
    luaunit.assertEquals(workload.gradients.collective, "reduce_scatter")
    local kinds, program = {}, steps.of(workload, 8, "cuda")
    for _, line in ipairs(program.collectives) do kinds[line:match("kind=(%S+)")] = true end
    luaunit.assertEquals(kinds, { all_gather = true, reduce_scatter = true })
  end
  local workload = description.parse(with("full_shard", "NO_SHARD"):gsub("mode: ddp", "mode: fsdp"), "t.yaml")
  luaunit.assertEquals(workload.gradients.collective, "allreduce")
end

-- Without the sections of DDP and FSDP it is DDP, with the defaults of PyTorch.
function TestTrainingYaml.test_sections_without_keys_have_defaults()
  local workload = description.parse(SHORT .. "fsdp:\n", "t.yml")
  luaunit.assertEquals(workload.gradients, { collective = "allreduce", bucket_bytes = 25 << 20 })
  luaunit.assertEquals(workload.dtype, { host = "float32", cuda = "float32" })
  luaunit.assertEquals(workload.tokens, 6)
  luaunit.assertEquals(workload.micro_batches, 1)
end

-- Every key of the file is used, or in one of the notes.
function TestTrainingYaml.test_notes_list_all_other_keys()
  local _, notes = training_yaml.read(WHOLE, "t.yaml")
  luaunit.assertEquals(notes, {
    "no effect on the workload: dataset.num_samples, distributed.backend, fsdp, logging, model.dropout, "
      .. "optimizer, streams, training.epochs",
    "parts of the model that the workload lacks (embeddings, products of attention, other streams): "
      .. "dataset.vocab_size, model.num_heads, model.vocab_size, training.additional_compute_streams" })
  _, notes = training_yaml.read(with("mode: ddp", "mode: fsdp"), "t.yaml")
  luaunit.assertStrContains(notes[1], "fsdp.forward_prefetch, logging")
  luaunit.assertStrContains(notes[1], "distributed.bucket_cap_mb")
end

-- A section without effect may be a scalar.
function TestTrainingYaml.test_scalars_without_effect_are_noted()
  local text = "compile: true\noptimizer: adamw\nprofiling: false\n" .. SHORT
  local _, notes = training_yaml.read(text, "t.yaml")
  luaunit.assertEquals(notes, { "no effect on the workload: compile, optimizer, profiling" })
end

function TestTrainingYaml.test_a_single_key_without_effect_has_no_comma()
  local _, notes = training_yaml.read(SHORT .. "distributed: {mode: fsdp, bucket_cap_mb: 25}\n", "t.yaml")
  luaunit.assertEquals(notes, { "no effect on the workload: distributed.bucket_cap_mb" })
end

function TestTrainingYaml.test_wrong_input_is_rejected_with_its_line()
  refused(with("  dropout:", "  drop_out:"), "run/t.yaml:19: model.drop_out: unknown key; valid: dense_dim, ")
  refused(with("streams:\n", "stream:\n"), "run/t.yaml:28: stream: unknown section; valid: dataset, ")
  refused("1: 2\n" .. WHOLE, "run/t.yaml:1: 1: unknown section")
  refused(with("num_layers: 20", "num_layers: 0"), "run/t.yaml:18: model.num_layers: 0 is impossible; a ")
  refused(with("num_layers: 20", "num_layers: many"), "run/t.yaml:18: model.num_layers: many is impossible")
  refused(with("num_layers: 20", "num_layers:"), "run/t.yaml:18: model.num_layers: null is impossible")
  refused(with("  model_dim: 1024\n", ""), "run/t.yaml:14: model.model_dim: is missing")
  refused(with("batch_size: 512", "batch_size: 5120"), "run/t.yaml:5: training.batch_size: 5120 x 176 tokens")
  refused(with("mode: ddp", "mode: pipeline"), "run/t.yaml:26: distributed.mode: pipeline .*valid: ddp, fsdp")
  refused(with("full_shard", "hybrid_shard"):gsub("mode: ddp", "mode: fsdp"),
    "run/t.yaml:22: fsdp.sharding_strategy: hybrid_shard .*valid: full_shard, no_shard")
  refused(with("bf16", "fp7"), "run/t.yaml:7: training.mixed_precision: fp7 .*valid: ")
  refused("model: 5\n", "run/t.yaml:1: model: a mapping is required")
  refused("- model\n", "run/t.yaml: is not a mapping")
  refused("", "run/t.yaml: is not a mapping")
  refused("model: [\n", "run/t.yaml: line %d+: ")
end

return require "suites" { { "TestTrainingYaml", TestTrainingYaml } }
