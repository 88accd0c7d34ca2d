# Shared by the tests of plug-ins on GPUs. Sourced, after lib_stand_in.sh.
# shellcheck shell=sh disable=SC2034,SC2154

# tuned SETTINGS ARGUMENT...
tuned() {
    tune_settings=$1
    shift
    gentables 0 "$tune_settings" tune --backend cuda --bench "$BENCH" --samples "${samples:-3}" --warm-up 1 \
        --cache "$WORK/tune.json" --fresh --json --sanitizer none "$@"
}

# quiet SETTINGS ARGUMENT...: the same, and nothing on stderr.
quiet() {
    tuned "$@"
    [ ! -s "$WORK/err" ] || fail "$*: unexpected message"
}

# has STRATEGY...: expects a time of each.
has() {
    for strategy in "$@"; do
        grep -q "\"strategy\": \"$strategy\"" "$WORK/out" || fail "no time of $strategy"
    done
}

# left_out FAULT PATTERN [TIMEOUT [LINES [OTHERS]]]: expects that this plug-in's FAULTY has no time, and that
# one line, or LINES, has the reason; OTHERS, default GOOD, and NCCL have times.
left_out() {
    tuned "" --op allgather --sizes "${sizes:-4K}" --plugin "$PLUGINS/bad_$1.so" --timeout "${3:-20}"
    grep -q "FAULTY: $2" "$WORK/err" || fail "$1: not printed"
    [ "$(wc -l <"$WORK/err")" = "${4:-1}" ] || fail "$1: not so many lines"
    # shellcheck disable=SC2086
    has NCCL ${5-GOOD}
    ! grep -q '"strategy": "FAULTY"' "$WORK/out" || fail "$1 has a time"
}
