#!/bin/sh
# Any invalid workload, option or machine ends in one clear line, and leaves nothing half made.
. "$SOURCE/tests/unit/workload/lib.sh"

# refused PATTERN [RANKS]: expects that the workload on standard input is rejected.
refused() {
    file=$(workload refused)
    rejects "refused.lua:.*$1" workload show -f "$file" -p "${2:-2}"
}

# gemm FIELDS: a workload of one GEMM with these fields.
gemm() {
    echo "return { name = 'x', tokens = 8, layers = { { name = 'l', gemms = { { name = 'g', $1 } } } } }"
}

step='layers = { { name = "l", gemms = { { name = "g", n = 8, k = 8 } } } }'

echo "return { name = 'x', tokens = 8, colour = 1, $step }" |
    refused 'workload: unknown key colour; .*tokens'
echo "return { name = 'x', $step }" | refused 'tokens: is missing'
echo "return { name = 'x', tokens = 0, $step }" | refused 'tokens: 0 is impossible; .* from 1'
echo "return { name = 'x', tokens = 2.5, $step }" | refused 'tokens: 2.5 is impossible'
echo "return { name = 'x', tokens = 9, micro_batches = 2, $step }" | refused 'tokens: 9 is not a multiple'
echo "return { name = 'a b', tokens = 8, $step }" | refused 'name: a b is not a name'
echo "return { tokens = 8, $step }" | refused 'name: is missing'
echo "return { name = 'x', tokens = 8 }" | refused 'layers: a list'
echo "return { name = 'x', tokens = 8, layers = {} }" | refused 'layers: a list'
gemm "n = -8, k = 8" | refused 'layers\[1\].gemms\[1\].n: -8 is impossible'
gemm "n = 8, kk = 8" | refused 'layers\[1\].gemms\[1\]: unknown key kk'
echo "return { name = 'x', tokens = 8, layers = { { name = 'l', experts = { load = { 0 } },
    gemms = { { name = 'g', n = 8, k = 8 } } } } }" | refused '.*experts.load\[1\]: 0 is impossible'
echo "return { name = 'x', tokens = 1, layers = { { name = 'l', experts = { load = { 1, 9 } },
    gemms = { { name = 'g', n = 8, k = 8 } } } } }" | refused 'l: rank . of 2 gets no tokens'
echo "return { name = 'x', tokens = 8, gradients = { collective = 'gossip' }, $step }" |
    refused 'gradients.collective: unknown collective gossip; valid: allreduce'
echo "return { name = 'x', tokens = 8, dtype = 'int7', $step }" | refused 'dtype.*: unknown type int7'
echo "return 5" | refused '1: returns number; a table is required'
echo "return {" | refused 'expected'
echo "while true do end" | refused '1: runs too long'
echo "return { name = os.getenv('HOME') }" | refused "global 'os'"
# Files and their work have limits.
echo "return { name = ('x'):rep(1e9), tokens = 8, $step }" | refused 'attempt to index a string value'
echo "local s = 'x' while true do s = s .. s end" | refused '1: needs more than 64 MiB'
long=$(printf '%0200d' 7)
for odd in "name = 'a $long', tokens = 8" "name = 'x', tokens = '$long'" \
    "name = 'x', tokens = 8, dtype = '$long'" "name = 'x', tokens = 8, x$long = 1" \
    "name = 'x', tokens = 8, gradients = { collective = '$long' }"; do
    echo "return { $odd, $step }" | refused '00000[.][.][.]'
    if grep -q "$long" "$stderr"; then die "a value is printed whole"; fi
done
gemm "n = 8, k = 8, dtype = 'int7'" |
    refused 'layers\[1\].gemms\[1\].dtype: unknown type int7; valid: bfloat16, float16, float32'
gemm "n = 8, k = 8, dtype = { tpu = 'int7' }" |
    refused 'layers\[1\].gemms\[1\].dtype: unknown key tpu; valid: cuda, host'
gemm "n = 8, k = 8, dtype = 16" | refused 'layers\[1\].gemms\[1\].dtype: a table'

# The limits of a step; a larger step is rejected before anything starts, in terms of the file.
# gentables-workload accepts a step at its limit (without `end`, with which it would make the arrays).
. "$SOURCE/tests/mpirun.sh"
cat >"$WORK/request_lines.lua" <<'END'
local description, steps = require "workload.description", require "workload.steps"
io.stdout:write(steps.text(steps.of(description.load(arg[1]), tonumber(arg[2]), "host")))
END
# at_most RANKS MOST MORE PATTERN WORKLOAD: with either number in place of %.
at_most() {
    echo "$5" | sed "s/%/$2/" >"$WORK/most.lua"
    succeeds lua "$WORK/request_lines.lua" "$WORK/most.lua" "$1"
    sed '/^end$/d' "$stdout" >"$WORK/program"
    # Rank 0 reads the file itself: the mpirun of Open MPI 4.1.4 now and then crashes (in
    # orte_iof_hnp_read_local_handler) while it passes on the end of a long standard input.
    $mpirun -n "$1" sh -c 'exec "$0" <"$1"' "${GENTABLES%/*}/gentables-workload" "$WORK/program" \
        </dev/null >"$WORK/answer" 2>&1 || die "the program refuses $2: $(tail -n 20 "$WORK/answer")"
    echo "$5" | sed "s/%/$3/" | refused "$4" "$1"
}
gemm="gemms = { { name = 'g', n = 1, k = 1 } }"
at_most 2 50 51 'layers\[1\]: gives a step 102000 GEMMs, .*; maximum 100000' \
    "local parts = % return { name = 'x', tokens = parts, micro_batches = parts, layers = { { name = 'l',
  copies = 1000, gemms = { { name = 'g', n = 1, k = 1, backward = false },
    { name = 'h', n = 1, k = 1, backward = false } } } } }"
at_most 2 1000 "1000, $gemm }, { name = 'm'" 'layers: a step has 100100 actions: .*; maximum 100000' \
    "return { name = 'x', tokens = 33, micro_batches = 33, gradients = { bucket_bytes = 1 },
  layers = { { name = 'l', copies = %, $gemm } } }"
at_most 4 1048575 1048576 'l.g: tokens: .* sums of 1048576 products on each of 4 .* maximum 1048575' \
    "return { name = 'x', tokens = %, layers = { { name = 'l', $gemm } } }"
at_most 4 1048575 1048576 'l.g: m: a float32 is not exact for sums of 1048576 products' \
    "return { name = 'x', tokens = 1,
  layers = { { name = 'l', gemms = { { name = 'g', m = %, n = 1, k = 1 } } } } }"
at_most 4 1048575 1048576 'l.g: k: a float32 is not exact for sums of 1048576 products' \
    "return { name = 'x', tokens = 1, layers = { { name = 'l', gemms = { { name = 'g', n = 1, k = % } } } } }"
at_most 4 1048575 1048576 'l.g: n: a float32 is not exact for sums of 1048576 products' \
    "return { name = 'x', tokens = 1, layers = { { name = 'l', gemms = { { name = 'g', n = %, k = 1 } } } } }"
at_most 6 699048 699052 'l.g: tokens: .* sums of 699052 products on each of 6 .* maximum 699050' \
    "return { name = 'x', tokens = %, micro_batches = 4, layers = { { name = 'l', $gemm } } }"
at_most 2 1048575 1048576 'l.big: gradients, n [*] k: 2147483648 elements .*; maximum 2147483647' \
    "return { name = 'x', tokens = 1, gradients = { bucket_bytes = 1 << 30 }, layers = { { name = 'l',
  gemms = { { name = 'big', n = 1048576, k = 2047 }, { name = 'g', n = %, k = 1 } } } } }"
at_most 2 2047 2048 'l: weights, n [*] k: 2147483648 elements' \
    "return { name = 'x', tokens = 1, gradients = { collective = 'reduce_scatter' }, layers = { { name = 'l',
  gemms = { { name = 'g', n = 1048576, k = % } } } } }"
at_most 2 2047 2048 'l.g: tokens of experts: 2147483648 elements' \
    "return { name = 'x', tokens = 1048576, layers = { { name = 'l', experts = { load = { 1 } },
  gemms = { { name = 'g', n = %, k = 1 } } } } }"
at_most 2 1 2 'l: .* gets 2097152 tokens; maximum 1048576; give fewer tokens or a smaller .*' \
    "return { name = 'x', tokens = 1048576, layers = { { name = 'l', experts = { load = { 1 }, top_k = % },
  $gemm } } }"
long=a123456789b123456789c123456789d123456789
at_most 2 e123456789f123456789gh e123456789f123456789ghi "$long.*has 64 characters; maximum 63" \
    "return { name = 'x', tokens = 1,
  layers = { { name = '$long', gemms = { { name = '%', n = 1, k = 1 } } } } }"
# Before the sweep has a folder.
rejects 'refused.lua: .* maximum 63' workload sweep -f "$WORK/refused.lua" -p 2 -o "$WORK/never"
[ ! -e "$WORK/never" ] || die "an impossible sweep has begun"

rejects 'none.lua: no such file or shipped workload; shipped: .*small' workload show -f "$WORK/none.lua"

# Options.
run() { ends_with 2 "$GENTABLES" workload run -f small "$@"; }
run -c 0 && one_line '--channels: 0 is impossible; .* 1 to 32'
run -c 42 --backend host &&
    one_line '--channels: 42 is impossible; .* 1 to 32 .* on the host [(]--backend cuda .* 128[)]'
run -c 42 && one_line '--channels: 42 is impossible; .* on the host because no GPU can be used: .*--backend'
run -t 512 && one_line '--threads: 512 is impossible; .* on the host because no GPU can be used: .*--backend'
run -t x && one_line '--threads: x is impossible'
run -c 1, && one_line '--channels: "1," has an empty entry; whole numbers from 1 to 32, with a comma between'
rejects '--channels: 77 is impossible; a whole number from 1 to 32' \
    workload sweep --backend host -f small -c 2 77
run -t 1,,2 && one_line '--threads: "1,,2" has an empty entry'
run -c "" && one_line '--channels: "" has an empty entry'
run -c 1,2 && one_line '--channels: one configuration is run'
run -p 1 && one_line '--tp: "1" is not a whole number from 2 to 16'
run -p 99 && one_line '--tp: "99" is not a whole number'
run --wait long && one_line '--wait: "long" is not one of futex, yield, spin'
run --transport builtn && one_line '--transport: there is no builtn [(]did you mean builtin[?][)]'
run --transport pigeon && one_line '--transport: there is no pigeon; valid: builtin or mpi'
run --backend cuda --transport mpi && one_line '--transport: there is no mpi; valid: builtin or nccl'
run --backend cuda -c 129 && one_line '--channels: 129 is impossible; .* 1 to 128'
run --backend cuda -t 1025 && one_line '--threads: 1025 is impossible; .* 1 to 1024'
run --backend tpu && one_line 'there is no tpu; valid: cuda or host'
run --steps 0 && one_line '--steps: "0" is not a whole number'
run --patience -1 && one_line '--timeout'
run --program "$WORK/none" && one_line 'no gentables-workload'
run --program /bin/true && one_line 'does not print protocol'
run --launcher 'mpirun' && one_line '[{]ranks[}]'
run --trace out.json && one_line '%r'
bf16=$(echo "return { name = 'x', tokens = 8, dtype = { cuda = 'bfloat16' }, $step }" | workload bf16)
for command in run show; do
    rejects 'dtype: host has none; valid: bfloat16, float16, float32' workload "$command" -f "$bf16"
done
host=$(echo "return { name = 'x', tokens = 8, dtype = { host = 'float32' }, $step }" | workload host)
rejects 'dtype: cuda has none; valid: bfloat16, float16, float32' workload run --backend cuda -f "$host"
rejects 'has no workload.json' workload report "$WORK"
# Errors in the report's options are reported before anything is measured.
for wrong in "--top-k 0:--top-k: .0. is not a whole number" \
    "--without foo:--without: .foo. is not one of reports"; do
    # shellcheck disable=SC2086
    rejects "${wrong#*:}" workload pipeline -f small -p 2 ${wrong%%:*} -o "$WORK/never"
    [ ! -e "$WORK/never" ] || die "${wrong%%:*} is refused after the sweep has begun"
    # shellcheck disable=SC2086
    rejects "${wrong#*:}" workload report "$WORK" ${wrong%%:*}
done
rejects 'has no workload.json' workload compare "$WORK" "$WORK"
# Settings without required fields.
for settings in '{}' '[]' '{"ranks": 2}'; do
    mkdir -p "$WORK/bare"
    echo "$settings" >"$WORK/bare/workload.json"
    for command in "report $WORK/bare" "compare $WORK/bare $WORK/bare -o $WORK/c.html"; do
        # shellcheck disable=SC2086
        ends_with 2 "$GENTABLES" workload $command
        one_line 'bare/workload.json: lacks a valid backend, id, name and . more: .*; run its sweep again'
    done
    ends_with 2 "$GENTABLES" workload sweep -f small -p 2 -o "$WORK/bare"
    one_line 'bare/workload.json: lacks a valid backend, id, name and . more: .*; .*--fresh'
done
rejects 'workload has no command "dance"' workload dance

# The machine: one clear line, and exit code 1 for failed work.
ends_with 1 env GENTABLES_OPENBLAS="$WORK/none.so" "$GENTABLES" workload run -f small -p 2
one_line 'GENTABLES_OPENBLAS: .*none.so'
ends_with 1 env GENTABLES_OPENBLAS=libm.so.6 "$GENTABLES" workload run -f small -p 2
one_line 'the library loaded as OpenBLAS lacks some of its functions'
failed 'it cannot be started' workload run -f small --launcher "$WORK/none -n {ranks}"
failed 'it died: exit code 1' workload run -f small --launcher 'false {ranks}'
# A launcher that prints which rank died, and why, as Open MPI does if it can.
dies() {
    printf '#!/bin/sh\nprintf "%s" >&2\nexit 9\n' "$1" >"$WORK/launch"
    chmod +x "$WORK/launch"
    failed "$2" workload run -f small --launcher "$WORK/launch {ranks}"
}
dies 'mpirun noticed that process rank 1 with PID 0 on node n.a exited\n on signal 9 (Killed).\n' \
    'rank 1 died: signal 9 [(]Killed[)]'
dies 'mpirun detected it:\n\n  Process name: [[60811,1],3]\n  Exit code:    7\n---\n' \
    'rank 3 died: exit code 7'
# A rank that detected it, and the launcher; and a launcher that names the rank that ended the others, or
# none.
seen='gentables-bench: rank 1 died, at the start\n'
dies "${seen}noticed that process rank 1 with PID 0 on node n.a exited\n on signal 9 (Killed).\n" \
    'rank 1 died: signal 9 [(]Killed[)]'
dies "${seen}noticed that process rank 0 with PID 0 on node n.a exited\n on signal 15 (Terminated).\n" \
    'rank 1 died$'
dies "${seen}" 'rank 1 died$'
dies 'Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n' \
    'one rank died; mpirun does not name it'

# Without a GPU, or without CUDA in the build.
if ! nvidia-smi >/dev/null 2>&1; then
    ends_with 1 "$GENTABLES" workload run -f small -p 2 --backend cuda
    one_line 'no CUDA driver|no GPU|the CUDA driver|built without CUDA'
fi

needs_blas
huge=$(echo "return { name = 'x', tokens = 1000000, layers = { { name = 'l', copies = 50,
    gemms = { { name = 'g', n = 60000, k = 8, backward = false } } } } }" | workload huge)
failed 'GB of arrays for each of 2 ranks: more than is free' workload run -f "$huge" -p 2
# Before the end of a hundred thousand steps, which would take longer than a test may.
ends_with 1 "$GENTABLES" workload run -f small -p 2 --steps 100000 --trace "$WORK/$(printf '%0300d' 0)%r.json"
one_line 'a trace cannot be written: File name too long'

