# What tests of plug-ins on GPUs share. Sourced, behind lib_stand_in.sh.
# shellcheck shell=sh

# tune SETTINGS ARGUMENT...
tune() {
    settings=$1
    shift
    status=0
    STAND_IN=$settings LD_LIBRARY_PATH=$folder timeout 200 "$GENTABLES" tune --backend cuda --bench "$BENCH" \
        --samples "${samples:-3}" --warm-up 1 --cache "$WORK/tune.json" --fresh --json --sanitizer none "$@" \
        >"$WORK/out" 2>"$WORK/err" ||
        status=$?
}

# has STRATEGY...: each has a time.
has() {
    for strategy in "$@"; do
        grep -q "\"strategy\": \"$strategy\"" "$WORK/out" || fail "no time of $strategy"
    done
}
