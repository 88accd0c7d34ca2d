#!/bin/sh
# Every GEMM and every collective of every kind of workload has right results, in every type, on several
# ranks, by both transports, over channels and threads and ways to wait: the program checks each before and
# after it measures, and otherwise ends with an error. Sizes are odd, so that no two parts have the same size.
. "$SOURCE/tests/unit/workload/lib.sh"
needs_blas

# right RANKS FILE OPTION...: expects right results.
right() {
    ranks=$1
    file=$2
    shift 2
    succeeds workload run -f "$file" -p "$ranks" --steps 2 --warm-up 0 "$@"
}

odd_workloads 3 37 91
routed=$(workload routed <<'END'
return { name = "routed", tokens = 60, micro_batches = 2,
  layers = {
    { name = "e", experts = { load = { 1, 2, 4 }, top_k = 2 }, gemms = { { name = "up", n = 33, k = 17 },
      { name = "down", n = 17, k = 33 } } },
    { name = "f", experts = { load = { 3, 1 } }, gemms = { { name = "one", n = 9, k = 17 } } },
    { name = "a", gemms = { { name = "g", n = 12, k = 9 } } },
    { name = "h", experts = { load = { 1 } }, gemms = { { name = "one", n = 9, k = 12 } } },
  } }
END
)
# Larger than the slots of shared memory, so that each slot is used several times.
large=$(workload large <<'END'
return { name = "large", tokens = 16,
  layers = { { name = "a", gemms = { { name = "g", n = 1001, k = 511 } } } } }
END
)
for transport in builtin mpi; do
    for file in "$reduced" "$spread" "$routed"; do
        right 2 "$file" --transport "$transport" -c 3 -t 2
        right 3 "$file" --transport "$transport" -c 1 -t 1
    done
    right 2 "$large" --transport "$transport" -c 2 -t 1
done
right 4 "$spread" -c 2 -t 2 --wait yield
right 4 "$routed" -c 4 -t 1 --wait yield
right 3 "$large" -c 4 -t 3
right 2 "$reduced" -c 1 -t 1 --wait spin
# GEMMs of several types in a step: elements that are summed and sent together have one type.
mixed_workloads 37 91
for transport in builtin mpi; do
    for file in "$mixed" "$mixed_spread"; do
        succeeds workload run -f "$file" -p 2 --steps 1 --warm-up 0 --transport "$transport" \
            -c 3 -t 2 --trace "$WORK/new/$transport/mixed%r.json" # it makes the folders
        traces_have_types 37 91 "$WORK/new/$transport"/mixed[01].json
        has '^OpenBLAS computes in fp32: the time of a GEMM of a 16-bit type' "$stdout"
        right 3 "$file" --transport "$transport" -c 2 -t 1
    done
done
none=$(workload none <<'END'
return { name = "none", tokens = 5, layers = { { name = "a", gemms = { { name = "g", n = 7, k = 6 } } } },
  gradients = { collective = "none" } }
END
)
right 2 "$none"
grep -q 'unknown from 2 steps' "$stdout" || die "a hidden share without communication"

# The YAML of a training script; the sweep keeps it.
for mode in ddp fsdp; do
    cat >"$WORK/train.yaml" <<END
model: {model_dim: 24, num_layers: 2, mlp_hidden_dim: 40, dropout: 0.1}
training: {batch_size: 2, gradient_accumulation: 2}
dataset: {sequence_length: 5}
distributed: {mode: $mode}
END
    right 2 "$WORK/train.yaml"
    grep -q "train.yaml: no effect on the workload: model.dropout" "$stderr" || die "a key is not listed"
done
succeeds workload sweep -f "$WORK/train.yaml" -p 2 --steps 2 --warm-up 0 -c 1 -t 1 -o "$WORK/sweep"
cmp "$WORK/train.yaml" "$WORK/sweep/workload.yaml" || die "the sweep has another workload"
