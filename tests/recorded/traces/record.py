"""Records the traces of this folder on one NVIDIA GPU: python3 record.py OUT [NAME...]

Needs torch and transformers. Each trace is OUT/NAME.json.gz, of one run after two that warm up. Models have
random weights and few layers; ranges name what runs (prefill, decode). A trace that fails is reported, and
the others are recorded.
"""
import gzip
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
WARM = 2

BASE = dict(hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4,
            vocab_size=8192, max_position_embeddings=2048)
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", 512, dict(BASE, intermediate_size=2816)),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", 512,
                dict(BASE, intermediate_size=1792, num_local_experts=8)),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", 256,
               dict(hidden_size=1024, num_hidden_layers=2, vocab_size=8192, num_heads=32, head_dim=64,
                    state_size=64, n_groups=1)),
}


def normal(*shape):
    """Normal random numbers in bfloat16."""
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(BF16)


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, device="cuda", dtype=dtype)


def ends(groups, rows):
    """The ends of equal groups of rows."""
    return torch.arange(rows // groups, rows + 1, rows // groups, device="cuda", dtype=torch.int32)


# ---- operators

def attention():
    q, k, v = normal(4, 32, 1024, 128), normal(4, 8, 1024, 128), normal(4, 8, 1024, 128)
    all_k, all_v = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)
    last = normal(4, 32, 1, 128)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION,
                    SDPBackend.MATH):
        with record_function("prefill_" + backend.name), sdpa_kernel(backend):
            F.scaled_dot_product_attention(q, all_k, all_v, is_causal=True)
        with record_function("decode_" + backend.name), sdpa_kernel(backend):
            F.scaled_dot_product_attention(last, all_k, all_v)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), record_function("gqa_FLASH"):
        F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def attention_backward():
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        q, k, v = (normal(2, 16, 1024, 64).requires_grad_() for _ in range(3))
        with sdpa_kernel(backend):
            F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


def gemms():
    x, w, bias = normal(2048, 4096), normal(4096, 4096), normal(4096)
    with record_function("mm"):
        torch.mm(x, w)
    with record_function("addmm"):
        torch.addmm(bias, x, w)
    with record_function("linear"):
        F.linear(x, w, bias)
    with record_function("bmm"):
        torch.bmm(normal(16, 512, 512), normal(16, 512, 512))
    x8, w8 = x.to(FP8), w.t().contiguous().to(FP8)
    with record_function("scaled_mm_tensorwise"):
        torch._scaled_mm(x8, w8.t(), scale_a=ones(()), scale_b=ones(()), out_dtype=BF16)
    with record_function("scaled_mm_rowwise"):
        torch._scaled_mm(x8, w8.t(), scale_a=ones(2048, 1), scale_b=ones(1, 4096), out_dtype=BF16)
    with record_function("int_mm"):
        torch._int_mm(ones(2048, 4096, dtype=torch.int8), ones(4096, 4096, dtype=torch.int8))


def grouped_mm():
    torch._grouped_mm(normal(4096, 2048), normal(8, 2048, 4096), offs=ends(8, 4096))


def scaled_grouped_mm():
    x, w = normal(4096, 2048).to(FP8), normal(8, 4096, 2048).to(FP8)
    torch._scaled_grouped_mm(x, w.transpose(-2, -1), ones(4096), ones(8, 4096), offs=ends(8, 4096),
                             out_dtype=BF16)


def operators():
    x, weight = normal(8, 1024, 4096), normal(4096)
    F.rms_norm(x, (4096,), weight)
    F.layer_norm(x, (4096,), weight, weight)
    torch.softmax(x, -1)
    F.silu(x).mul(x)
    F.gelu(x)
    torch.topk(x[:, :, :64], 8)
    F.embedding(torch.randint(0, 4096, (8, 1024), device="cuda"), normal(4096, 4096))
    F.cross_entropy(normal(2048, 32000).float(), torch.randint(0, 32000, (2048,), device="cuda"))
    x.index_put_((torch.arange(8, device="cuda"),), normal(8, 1024, 4096))
    torch.sort(x[0, 0])
    torch.cumsum(x[0].float(), 0)
    torch.multinomial(torch.softmax(normal(8, 32000).float(), -1), 1)


# ---- models

def model_of(name):
    """The model, and its input."""
    of, config, tokens, settings = MODELS[name]
    config = getattr(transformers, config)(**settings)
    model = getattr(transformers, of)(config).to("cuda").to(BF16).eval()
    return model, torch.randint(0, config.vocab_size, (4, tokens), device="cuda")


def inference(name, steps=4):
    model, ids = model_of(name)

    @torch.no_grad()
    def run():
        with record_function("prefill"):
            out = model(ids, use_cache=True)
        cache = getattr(out, "past_key_values", None)
        for _ in range(steps if cache is not None else 0):
            last = out.logits[:, -1:].argmax(-1)
            with record_function("decode"):
                out = model(last, past_key_values=cache, use_cache=True)
    return run


def training(name):
    model, ids = model_of(name)
    model.train()

    def run():
        model(ids, labels=ids).loss.backward()
        model.zero_grad()
    return run


def compiled(name):
    model, ids = model_of(name)
    model = torch.compile(model)

    @torch.no_grad()
    def run():
        model(ids, use_cache=False)
    return run


# ---- replayed graphs

def graph_replay():
    """A step with two collectives of one rank, once and five times from a CUDA graph."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda:0"))
    x, w = normal(512, 1024), normal(1024, 1024)

    def step():
        y = x @ w
        dist.all_reduce(y)
        y = F.rms_norm(y, (1024,))
        dist.all_gather_into_tensor(torch.empty_like(y), y)

    for _ in range(3):
        step()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        step()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            step()

    def run():
        with record_function("eager"):
            step()
        for _ in range(5):
            with record_function("replay"):
                graph.replay()
    return run


def reduce_overhead():
    layers = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024))
    model, x = torch.compile(layers.to("cuda").to(BF16), mode="reduce-overhead"), normal(64, 1024)

    @torch.no_grad()
    def run():
        for _ in range(4):
            model(x)
    return run


# Functions that return what is recorded.
TRACES = {
    "attention": lambda: attention,
    "attention_backward": lambda: attention_backward,
    "gemms": lambda: gemms,
    "grouped_mm": lambda: grouped_mm,
    "scaled_grouped_mm": lambda: scaled_grouped_mm,
    "operators": lambda: operators,
    "llama_train": lambda: training("llama"),
    "llama_compiled": lambda: compiled("llama"),
    "mixtral": lambda: inference("mixtral"),
    "mamba2": lambda: inference("mamba2", steps=2),
    "graph_replay": graph_replay,
    "reduce_overhead": reduce_overhead,
}


def record(run, path):
    for _ in range(WARM):
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as recorded:
        run()
        torch.cuda.synchronize()
    recorded.export_chrome_trace(path)
    with open(path, "rb") as plain, gzip.GzipFile(path + ".gz", "wb", 9, mtime=0) as packed:
        packed.write(plain.read())
    os.remove(path)


def main(folder, *names):
    os.makedirs(folder, exist_ok=True)
    failed = 0
    for name in names or TRACES:
        try:
            record(TRACES[name](), os.path.join(folder, name + ".json"))
            print("recorded", name, flush=True)
        except Exception as error:  # the others are still of use
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
