# What the shell tests of workloads share. Sourced; GENTABLES (the program), SOURCE (the source tree) and WORK
# (a folder of this test's own) come from CMakeLists.txt.
# shellcheck shell=sh
set -eu
LC_ALL=C
export LC_ALL
rm -rf "$WORK"
mkdir -p "$WORK"
stdout=$WORK/stdout
stderr=$WORK/stderr

die() {
    echo "FAILED: $1"
    echo "stdout:" && cat "$stdout"
    echo "stderr:" && cat "$stderr"
    exit 1
}

# ends_with CODE COMMAND...: runs it and says if it ended otherwise.
ends_with() {
    wanted=$1
    shift
    code=0
    "$@" >"$stdout" 2>"$stderr" || code=$?
    [ "$code" = "$wanted" ] || die "exit code $code, not $wanted: $*"
}

# one_line PATTERN: stderr is one line of ours, and this extended expression is found in it.
one_line() {
    [ "$(wc -l <"$stderr")" = 1 ] || die "not one line on stderr"
    grep -q '^gentables: ' "$stderr" || die "not a line of gentables"
    grep -Eq -- "$1" "$stderr" || die "stderr lacks: $1"
}

# Without OpenBLAS no step can be run here.
needs_blas() {
    code=0
    "$GENTABLES" workload run -f small -p 2 --steps 1 --warm-up 0 >"$stdout" 2>"$stderr" || code=$?
    if grep -q 'no OpenBLAS' "$stderr"; then
        echo "no OpenBLAS here"
        exit 77
    fi
    [ "$code" = 0 ] || die "a small step does not run"
}

# workload NAME: standard input becomes the workload's file, whose name is printed.
workload() {
    cat >"$WORK/$1.lua"
    echo "$WORK/$1.lua"
}
