#!/bin/sh
# Whatever is wrong with a workload, an option or the machine ends in one clear line, and leaves nothing half
# made.
# shellcheck source=tests/workload/lib.sh
. "$SOURCE/tests/workload/lib.sh"

# refused PATTERN: the workload on standard input.
refused() {
    file=$(workload refused)
    ends_with 2 "$GENTABLES" workload show -f "$file"
    one_line "refused.lua:.*$1"
}

step='layers = { { name = "l", gemms = { { name = "g", n = 8, k = 8 } } } }'

echo "return { name = 'x', tokens = 8, colour = 1, $step }" |
    refused 'workload: there is no key colour; .*tokens'
echo "return { name = 'x', $step }" | refused 'tokens: is missing'
echo "return { name = 'x', tokens = 0, $step }" | refused 'tokens: 0 is impossible; .* from 1'
echo "return { name = 'x', tokens = 2.5, $step }" | refused 'tokens: 2.5 is impossible'
echo "return { name = 'x', tokens = 9, micro_batches = 2, $step }" | refused 'tokens: 9 is no multiple of 2'
echo "return { name = 'a b', tokens = 8, $step }" | refused 'name: a b is no name'
echo "return { tokens = 8, $step }" | refused 'name: is missing'
echo "return { name = 'x', tokens = 8 }" | refused 'layers: a list'
echo "return { name = 'x', tokens = 8, layers = {} }" | refused 'layers: a list'
echo "return { name = 'x', tokens = 8,
    layers = { { name = 'l', gemms = { { name = 'g', n = -8, k = 8 } } } } }" |
    refused 'layers\[1\].gemms\[1\].n: -8 is impossible'
echo "return { name = 'x', tokens = 8,
    layers = { { name = 'l', gemms = { { name = 'g', n = 8, kk = 8 } } } } }" |
    refused 'layers\[1\].gemms\[1\]: there is no key kk'
echo "return { name = 'x', tokens = 8, layers = { { name = 'l', experts = { load = { 0 } },
    gemms = { { name = 'g', n = 8, k = 8 } } } } }" | refused '.*experts.load\[1\]: 0 is impossible'
echo "return { name = 'x', tokens = 1, layers = { { name = 'l', experts = { load = { 1, 9 } },
    gemms = { { name = 'g', n = 8, k = 8 } } } } }" | refused 'l: rank . of 2 gets no tokens'
echo "return { name = 'x', tokens = 8, gradients = { collective = 'gossip' }, $step }" |
    refused 'gradients.collective: there is no gossip; allreduce'
echo "return { name = 'x', tokens = 8, dtype = 'int7', $step }" | refused 'dtype.*: there is no int7'
echo "return 5" | refused 'returns no table'
echo "return {" | refused 'expected'
echo "while true do end" | refused 'it takes too long'
echo "return { name = os.getenv('HOME') }" | refused "global 'os'"
# What a file says, and what it takes, has an end.
echo "return { name = ('x'):rep(1e9), tokens = 8, $step }" | refused 'attempt to index a string value'
echo "local s = 'x' while true do s = s .. s end" | refused 'it takes more than 64 MiB'
long=$(printf '%0200d' 7)
for odd in "name = 'a $long', tokens = 8" "name = 'x', tokens = '$long'" \
    "name = 'x', tokens = 8, dtype = '$long'" "name = 'x', tokens = 8, x$long = 1" \
    "name = 'x', tokens = 8, gradients = { collective = '$long' }"; do
    echo "return { $odd, $step }" | refused '00000[.][.][.]'
    if grep -q "$long" "$stderr"; then die "a value is printed whole"; fi
done
echo "return { name = 'x', tokens = 8,
    layers = { { name = 'l', gemms = { { name = 'g', n = 8, k = 8, dtype = 'bfloat16' } } } } }" |
    refused 'layers\[1\].gemms\[1\].dtype: .* one dtype'

ends_with 2 "$GENTABLES" workload show -f "$WORK/none.lua"
one_line 'none.lua: no such file, and no workload that comes along; those are small'

# Options.
run() { ends_with 2 "$GENTABLES" workload run -f small "$@"; }
run -c 0 && one_line -- '--channels: 0 is impossible; .* 1 to 32'
run -c 99 && one_line -- '--channels: 99 is impossible'
run -t x && one_line -- '--threads: x is impossible'
run -c 1,2 && one_line -- '--channels: one configuration is run'
run -p 1 && one_line -- '--ranks: 1 is impossible'
run -p 99 && one_line -- '--ranks: 99 is impossible'
run --wait long && one_line -- '--wait: there is no long; futex or spin or yield'
run --transport pigeon && one_line -- '--transport: there is no pigeon; mpi or own'
run --backend cuda --transport mpi && one_line -- '--transport: there is no mpi; nccl or own would be right'
run --backend cuda -c 129 && one_line -- '--channels: 129 is impossible; .* 1 to 128'
run --backend cuda -t 1025 && one_line -- '--threads: 1025 is impossible; .* 1 to 1024'
run --backend tpu && one_line 'there is no tpu; cuda or host would be right'
run --steps 0 && one_line -- '--steps: 0 is impossible'
run --patience -1 && one_line -- '--patience'
run --program "$WORK/none" && one_line 'no gentables-workload'
run --program /bin/true && one_line 'does not say protocol'
run --launcher 'mpirun' && one_line '[{]ranks[}]'
run --trace out.json && one_line '%r'
bf16=$(echo "return { name = 'x', tokens = 8, dtype = 'bfloat16', $step }" | workload bf16)
ends_with 2 "$GENTABLES" workload run -f "$bf16"
one_line 'dtype: bfloat16 does not go on host; float32'
host=$(echo "return { name = 'x', tokens = 8, dtype = { host = 'float32' }, $step }" | workload host)
ends_with 2 "$GENTABLES" workload run --backend cuda -f "$host"
one_line 'dtype: none does not go on cuda; bfloat16, float16, float32 would be right'
ends_with 2 "$GENTABLES" workload report "$WORK"
one_line 'no workload.json in it'
ends_with 2 "$GENTABLES" workload compare "$WORK" "$WORK"
one_line 'no workload.json in it'
ends_with 2 "$GENTABLES" workload dance
one_line 'workload has no command "dance"'

# The machine: one clear line, and exit code 1 for work that failed.
ends_with 1 env GENTABLES_OPENBLAS="$WORK/none.so" "$GENTABLES" workload run -f small -p 2
one_line 'GENTABLES_OPENBLAS: .*none.so'
ends_with 1 env GENTABLES_OPENBLAS=libm.so.6 "$GENTABLES" workload run -f small -p 2
one_line 'what was loaded as OpenBLAS lacks some of its functions'
ends_with 1 "$GENTABLES" workload run -f small --launcher "$WORK/none -n {ranks}"
one_line 'it cannot be started'
ends_with 1 "$GENTABLES" workload run -f small --launcher 'false {ranks}'
one_line 'it died: exit code 1'
# A launcher that says which rank died, and of what, as Open MPI does where it knows.
dies() {
    printf '#!/bin/sh\nprintf "%s" >&2\nexit 9\n' "$1" >"$WORK/launch"
    chmod +x "$WORK/launch"
    ends_with 1 "$GENTABLES" workload run -f small --launcher "$WORK/launch {ranks}"
    one_line "$2"
}
dies 'mpirun noticed that process rank 1 with PID 0 on node n.a exited\n on signal 9 (Killed).\n' \
    'rank 1 died: signal 9 [(]Killed[)]'
dies 'mpirun detected it:\n\n  Process name: [[60811,1],3]\n  Exit code:    7\n---\n' \
    'rank 3 died: exit code 7'
# A rank that saw it, and the launcher; and where the launcher tells of who ended the others, or of nobody.
seen='gentables-bench: rank 1 died, at the start\n'
dies "${seen}noticed that process rank 1 with PID 0 on node n.a exited\n on signal 9 (Killed).\n" \
    'rank 1 died: signal 9 [(]Killed[)]'
dies "${seen}noticed that process rank 0 with PID 0 on node n.a exited\n on signal 15 (Terminated).\n" \
    'rank 1 died$'
dies "${seen}" 'rank 1 died$'

# Where there is no GPU, or no CUDA to build with.
if ! nvidia-smi >/dev/null 2>&1; then
    ends_with 1 "$GENTABLES" workload run -f small -p 2 --backend cuda
    one_line 'no CUDA driver|no GPU|the CUDA driver|built without CUDA'
fi

needs_blas
huge=$(echo "return { name = 'x', tokens = 1000000, layers = { { name = 'l', copies = 50,
    gemms = { { name = 'g', n = 60000, k = 8, backward = false } } } } }" | workload huge)
ends_with 1 "$GENTABLES" workload run -f "$huge" -p 2
one_line 'GB of arrays for each of 2 ranks: more than is free'
# Before a hundred thousand steps, which would take longer than a test may.
ends_with 1 "$GENTABLES" workload run -f small -p 2 --steps 100000 --trace "$WORK/none/%r.json"
one_line 'a trace cannot be written: No such file'

