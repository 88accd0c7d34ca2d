#!/bin/sh
# compute-sanitizer around trials on GPUs, replaced by a script that prints its output. If it reports nothing,
# the plug-in stays, with one brief trial under the sanitizer; a report leaves the plug-in out, in one line.
# If it cannot run, one line reports that, and no candidate is left out.
. "$(dirname "$0")/../lib_stand_in.sh"
only cuda nccl nvidia-ml
SEEN=$WORK/seen
export SEEN

# sanitizer BODY: the script. "$@" is the program that it has to run.
sanitizer() {
    mkdir -p "$WORK/bin"
    cat >"$WORK/bin/compute-sanitizer" <<END
#!/bin/sh
echo "\$*" >>"\$SEEN"
echo "========= COMPUTE-SANITIZER"
while case \$1 in --*) true ;; *) false ;; esac do shift 2; done
$1
END
    chmod +x "$WORK/bin/compute-sanitizer"
    rm -f "$SEEN"
}

# tune LIBRARY ARGUMENT...: only the script is in PATH.
tune() {
    library=$1
    shift
    STAND_IN="" LD_LIBRARY_PATH=$folder PATH=${path-$WORK/bin} "$GENTABLES" tune --backend cuda \
        --bench "$BENCH" --op allgather --sizes 4K --samples 2 --warm-up 1 --cache "$WORK/tune.json" \
        --fresh --json --plugin "$PLUGINS/$library.so" "$@" >"$WORK/out" 2>"$WORK/err" || fail "$library: $?"
}

# lines N: expects this many lines.
lines() {
    [ "$(wc -l <"$WORK/err")" = "$1" ] || fail "not $1 lines"
}

# timed STRATEGY
timed() { grep -q "\"strategy\": \"$1\"" "$WORK/out"; }

good='"$@" && status=0 || status=$?
echo "========= ERROR SUMMARY: 0 errors"
exit "$status"'

sanitizer "$good"
tune peer_copies
lines 0
timed PEER_COPIES || fail "a candidate that passed has no time"
[ "$(wc -l <"$SEEN")" = 1 ] || fail "not one trial under it"
has "--tool memcheck .*--error-exitcode [1-9][0-9]* .*$BENCH --brief-trial " "$SEEN"

# A candidate that failed the trial before does not run under the sanitizer; its neighbour does.
tune bad_crash
lines 1
printed err "FAULTY: crashed"
timed GOOD || fail "GOOD, beside a candidate that crashes, has no time"

sanitizer 'echo none' # and it does not run if it is switched off
tune peer_copies --sanitizer none
lines 0
[ ! -e "$SEEN" ] || fail "the sanitizer ran although it was switched off"

# The sanitizer of CUDA_HOME, if PATH has none; and one that an option names.
sanitizer "$good"
path=$WORK/empty CUDA_HOME=$WORK/nowhere tune peer_copies
[ ! -e "$SEEN" ] || fail "a sanitizer was found where there is none"
mkdir -p "$WORK/cuda"
mv "$WORK/bin" "$WORK/cuda/bin"
export CUDA_HOME="$WORK/cuda"
path=$WORK/empty tune peer_copies
[ "$(wc -l <"$SEEN")" = 1 ] || fail "not found in CUDA_HOME"
path=$WORK/empty CUDA_HOME=$WORK/nowhere tune peer_copies --sanitizer "$WORK/cuda/bin/compute-sanitizer"
[ "$(wc -l <"$SEEN")" = 2 ] || fail "the named sanitizer did not run"
if "$GENTABLES" tune --backend cuda --bench "$BENCH" --op allgather --sanitizer "$WORK/absent" \
    >"$WORK/out" 2>"$WORK/err"; then fail "a missing sanitizer is accepted"; fi
grep -q "absent is no path of a program" "$WORK/err" || fail "no message about a missing sanitizer"

# Errors in the sanitizer's own notation.
sanitizer '"$@" || exit
say() { echo "========= $*"; }
say "Invalid __global__ write of size 4 bytes"
say "    at copy_words(unsigned int *)+0x60 in mine.cu:6"
say "    by thread (0,0,0) in block (0,0,0)"
say "    Address 0x7f004700004f is out of bounds"
say
say "Invalid __global__ read of size 8 bytes"
say "    at others()+0x10"
say "ERROR SUMMARY: 2 errors"
exit 86'
tune peer_copies
lines 1
said="Invalid __global__ write of size 4 bytes at copy_words(unsigned int \*)+0x60 in mine.cu:6"
grep -q "peer_copies.so: compute-sanitizer: $said; it is left out" "$WORK/err" || fail "no line of an error"
if timed PEER_COPIES || timed PEER_COPIES_256K; then fail "a candidate with errors has a time"; fi
timed NCCL || fail "an error spoils the others"
printed out "\"PEER_COPIES\": \"compute-sanitizer: Invalid"

# It cannot run here; the program fails under it; it lacks an option.
# left_alone BODY WHY
left_alone() {
    sanitizer "$1"
    tune peer_copies
    lines 1
    grep -q "peer_copies.so: compute-sanitizer could not check it: $2" "$WORK/err" || fail "no message: $2"
    timed PEER_COPIES || fail "left out without an error: $2"
}
unset CUDA_HOME
left_alone 'echo "========= Error: Device not supported."; exit 1' "Device not supported."
left_alone '"$@" >/dev/null; echo "========= ERROR SUMMARY: 0 errors"; exit 3' "exit code 3"
left_alone 'echo "trial strategy=PEER_COPIES status=failed reason=writes beyond a buffer"' \
    "PEER_COPIES: writes beyond a buffer"
sanitizer 'exit 86'
tune peer_copies
printed err "peer_copies.so: compute-sanitizer: errors without a location; it is left out"
left_alone 'echo "no option --tool" >&2; exit 1' "exit code 1"
