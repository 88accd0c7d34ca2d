#!/bin/sh
# shellcheck disable=SC2034 # what it sets is for whoever sources it
# What the tests of tune share. Sourced. BENCH, GENTABLES, PLUGINS and WORK come from CMakeLists.txt.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
XDG_CACHE_HOME=$WORK/cache
export XDG_CACHE_HOME

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# tune ARGUMENT...: `samples` samples (5); exit code in $status, what it says in $WORK/out and $WORK/err.
tune() {
    status=0
    "$GENTABLES" tune --bench "$BENCH" --samples "${samples:-5}" --warm-up 1 "$@" >"$WORK/out" \
        2>"$WORK/err" || status=$?
}

# launcher: makes $WORK/launcher, which starts as many ranks as its first argument says, by mpirun, once it
# has done what stdin says.
launcher() {
    # shellcheck source=tests/mpirun.sh
    . "$(dirname "$0")/../mpirun.sh"
    {
        printf '#!/bin/sh\nranks=$1\nshift\n'
        cat
        echo "exec $mpirun -n \"\$ranks\" \"\$@\""
    } >"$WORK/launcher"
    chmod +x "$WORK/launcher"
}

# said FILE PATTERN
said() {
    grep -q -- "$2" "$WORK/$1" || fail "no '$2' in: $(cat "$WORK/out" "$WORK/err")"
}
