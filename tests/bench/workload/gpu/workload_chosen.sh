#!/bin/sh
# The default backend of a workload, with stand-ins: GPUs if they can be used. A missing library or GPU ends
# in one clear line.
. "$SOURCE/tests/unit/workload/lib.sh"
. "$SOURCE/tests/bench/workload/gpu/lib_libraries.sh"
odd_workloads 2 13 21

# ---- the default: a GPU, if one can be used ----
only cuda cublasLt nccl
unasked() {
    settings=$1
    code=$2
    shift 2
    gpus "$settings" "$code" workload sweep -f "$reduced" -p 2 --steps 1 --warm-up 0 "$@"
}
swept=$WORK/sweep_20260102_030411
unasked "" 0 -c 28,42 -t 256,512 -o "$swept"
for file in "$stdout" "$swept"/nccl_thread_sweep_20*.log; do
    has 'cuda: 2 GPUs are usable; --backend host selects the host' "$file"
done
grep -q '"backend": *"cuda"' "$swept/workload.json" || die "a GPU can be used, and is not taken"
has '4 measured, 0 already present, 0 failed' "$stdout"
# A sweep resumes with the backend of its beginning, or reports why it cannot.
unasked "gpus=0" 0 -c 28,42 -t 256,512 -o "$swept"
has '^backend   cuda: this sweep was begun on it$' "$stdout"
grep -q '0 measured, 4 already present' "$stdout" || die "what is there was measured again"
unasked "" 2 -c 2 -t 1 -o "$swept" --backend host
one_line 'was measured with another backend; give another --out, or --fresh'
unasked "" 0 -c 2 -t 1 -o "$WORK/requested" --backend host
has '"backend": *"host"' "$WORK/requested/workload.json"
if grep -q '^backend' "$stdout"; then die "a requested backend has a reason"; fi
unasked "" 0 -c 2,3 -t 1 -o "$WORK/requested"
has '^backend   host: this sweep was begun on it$' "$stdout"
grep -q '1 measured, 1 already present' "$stdout" || die "the sweep of the host does not continue"
unasked "gpus=0" 2 -c 28 -t 256 -o "$WORK/none"
one_line '--threads: 256 is impossible; .* on the host because no GPU can be used: no GPU: the driver'
[ ! -e "$WORK/none" ] || die "a sweep that is refused has begun"
unasked "gpus=0" 0 -c 2 -t 1 -o "$WORK/none"
grep -q '^backend   host: no GPU can be used: no GPU: the driver' "$stdout" || die "no reason for the host"
# With NCCL each rank has a GPU; on one GPU all ranks use our kernels. Of several GPUs each has a rank.
gpus "gpus=1" 0 workload run -f "$reduced" -c 2 -t 64 --steps 1 --warm-up 0
has '^backend   cuda: all ranks on one GPU, by --transport builtin; --backend' "$stdout"
gpus "gpus=3" 0 workload run -f "$spread" --steps 1 --warm-up 0 --json
grep -q '"backend": *"cuda"' "$stdout" || die "the JSON has another backend than cuda"
head -c 1 "$stdout" | grep -q '{' || die "JSON does not stand alone"
grep -q '^backend   cuda: 3 GPUs are usable' "$stderr" || die "no reason for the backend beside JSON"
[ "$(grep -o '"gemm_alone_us"' "$stdout" | wc -l)" = 3 ] || die "not a rank for each GPU"
# A transport that only one backend has also decides.
gpus "" 0 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0 --transport mpi --json
grep -q '"backend": *"host"' "$stdout" || die "MPI's collectives did not run on the host"
gpus "gpus=0" 1 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0 --transport nccl
grep -q 'no GPU: the driver sees none' "$stderr" || die "no line about the missing GPU for NCCL"
gpus "" 0 workload run -f "$reduced" -p 2 -c 2 -t 64 --steps 1 --warm-up 0 --transport builtin
has '^backend   cuda: all ranks on one GPU, by --transport builtin; --backend' "$stdout"
# Without the libraries that steps need.
only cuda cublasLt
gpus "" 0 workload run -f "$reduced" -p 2 -c 2 -t 64 --steps 1 --warm-up 0
has '^backend   cuda: all ranks on one GPU, by --transport builtin; NCCL was not found' "$stdout"
only cuda nccl
gpus "" 0 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0
has '^backend   host: no GPU can be used: libcublasLt' "$stdout"
only
gpus "" 0 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0
has '^backend   host: no GPU can be used: no CUDA driver' "$stdout"

# ---- missing libraries and GPUs ----
only cuda cublasLt nccl
fails() { # SETTINGS PATTERN
    gpus "$1" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
    one_line "$2"
}
fails gpus=1 '2 ranks and 1 GPU: each rank needs a GPU'
fails gpus=0 'no GPU: the driver sees none'
fails memory_mib=60 'out of memory'
fails nccl_refuses "NCCL makes no communicator: the stand-in's error 5; no such thing"
fails refuses 'cuBLASLt does not compute this'
only cuda cublasLt
fails "" 'NCCL was not found'
only cuda nccl
fails "" 'libcublasLt.so'
only
fails "" 'no CUDA driver'
