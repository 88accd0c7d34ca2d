#!/bin/sh
# Each fault of a plug-in gives a clear line, and does not affect the rest: a library with an invalid
# description is left out; of a faulty candidate only that candidate. All others are measured. Only a path
# without a library is wrong use.
. "$(dirname "$0")/../../unit/tune/lib.sh"
hurries

# Libraries with an invalid description: a line leaves out each of them, and the one beside them has times.
refused() {
    cat >"$WORK/invalid" <<'INVALID'
abi another version of the interface
symbol exports no gentables_plugin
twice another candidate has this name
op declares no op, or an unknown one
dtype declares no data type, or an unknown one
flag declares an unknown flag
reduce_op declares an unknown reduce op
no_sum declares an op that sums, but no reduce op
fusionless declares no fusion
null candidate 2 of 2 is NULL
short_plugin lacks a function
INVALID
    set --
    while read -r fault _; do set -- "$@" --plugin "$PLUGINS/bad_$fault.so"; done <"$WORK/invalid"
    tuned --op allreduce --sizes 1K --dtype float32 "$@" --plugin "$PLUGINS/bad_nothing.so" \
        --strategies MPI,GOOD --json
    while read -r fault pattern; do
        printed err "bad_$fault.so: .*$pattern.*; it is left out"
    done <"$WORK/invalid"
    [ "$(wc -l <"$WORK/err")" = "$(wc -l <"$WORK/invalid")" ] || fail "not a line each: $(cat "$WORK/err")"
    printed out '"strategy": "GOOD"'
    printed out '"strategy": "MPI"'
}
# Two plug-ins with one name: the first one on the command line keeps it.
same_name() {
    cp "$PLUGINS/bad_nothing.so" "$WORK/again.so"
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_nothing.so" \
        --plugin "$WORK/again.so" --strategies MPI,GOOD --json
    printed err "again.so: .*another candidate has this name; it is left out"
    printed out '"strategy": "GOOD"'
}

# Files that are no libraries.
no_library() {
    echo "no library" >"$WORK/text.so"
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$WORK/text.so" --strategies MPI
    printed err "text.so: cannot be loaded: .*; it is left out"
}

# no_path PATH PATTERN
no_path() {
    tune --op allreduce --sizes 1K --plugin "$1"
    [ "$status" = 2 ] || fail "$1 is taken"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: not one line: $(cat "$WORK/err")"
    printed err "$2"
}
# left_out FAULT PATTERN [LINES]: expects one line, or LINES.
left_out() {
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so" \
        --strategies MPI,GOOD,FAULTY --timeout $timeout --fresh --json
    printed err "FAULTY: $2"
    [ "$(wc -l <"$WORK/err")" -le "${3:-1}" ] || fail "$1: more than a line: $(cat "$WORK/err")"
    printed out '"strategy": "MPI"'
    case $1 in leak* | fork* | heap) return ;; esac # a leak cannot be attributed to a candidate
    printed out '"strategy": "GOOD"'
}

# An epilogue is tried, too; a right one is timed fused.
# fused_left_out FAULT PATTERN
fused_left_out() {
    tuned --op allreduce --sizes 16K --dtype float32 --plugin "$PLUGINS/bad_$1.so" --fresh --json \
        --strategies MPI,GOOD,FAULTY --fusion RESIDUAL_RMS_NORM --hidden-size 1024
    printed err "FAULTY: $2"
    "$GENTABLES" lua "$(dirname "$0")/fused_by.lua" "$WORK/out" GOOD || fail "$1: $(cat "$WORK/out")"
}

# taken FAULT: expects no fault.
taken() {
    tune --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so" \
        --strategies MPI,GOOD,FAULTY --fresh --json
    if [ "$status" != 0 ] || [ -s "$WORK/err" ]; then fail "$1: $(cat "$WORK/err")"; fi
    printed out '"strategy": "FAULTY"'
}

# Sizes that do not divide: no time, a reason, and the others are measured.
no_multiple() {
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_multiple.so" \
        --strategies MPI,GOOD,FAULTY
    printed out "no time: FAULTY: the number of elements is no multiple of its count_multiple"
}

is_sanitized() { ldd "$BENCH" | grep -q libasan; }

# fork, fork_away: a reader that waits for the end of their output would wait for these processes. leak_page,
# heap: a page at a time, and 24 bytes a call; a sanitizer's own memory varies by more. short: a struct with
# fewer members; the others count as zero. fork_waited: a child that its parent waits for is no fault.
cases "$@" <<'END'
left_out hang "did not return in time"
left_out cancelled "did not return in time: it ended when it was cancelled"
refused
same_name
no_library
no_path bad_abi.so "with a slash, as ./bad_abi.so"
no_path /nowhere/mine.so "there is no such file"
left_out beyond "touched memory beyond a buffer\|writes beyond a buffer"
left_out late "writes after it has returned"
left_out late_release "writes after it has returned"
left_out late_fini "writes after it has returned"
left_out workspace "touched memory beyond a buffer\|writes beyond its workspace"
left_out differs "wrong result"
left_out crash "crashed (segmentation fault)"
left_out leave "ended the process"
left_out rounds "wrong result: out.*, for sums in fp32"
left_out bits "its sums in fp32 have other bits on another rank"
left_out stack "crashed (segmentation fault)"
left_out fork "its plug-in leaks child processes" 2
left_out fork_away "its plug-in leaks child processes" 2
left_out leak "its plug-in leaks open files" 2
left_out leak_thread "its plug-in leaks threads" 2
left_out leak_map "its plug-in leaks mapped bytes" 2
is_sanitized || left_out leak_page "its plug-in leaks mapped bytes" 2
is_sanitized || left_out heap "its plug-in leaks heap memory" 2
fused_left_out fused "wrong result: out"
fused_left_out fused_beyond "touched memory beyond a buffer"
fused_left_out fused_late "writes after it has returned"
taken short
taken fork_waited
no_multiple
END
