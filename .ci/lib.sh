# Common parts of .ci/run and .ci/nightly: a clean environment, stages, and the summary of their results.
# Sourced by bash, in the root of the sources.
#
#   ci_clean_environment "$@"     starts the script again under env -i with a plain PATH
#   ci_stage NAME COMMAND...      runs a command that writes a JUnit file to $results/NAME.xml
#   ci_preset NAME [OPTION...]    configures, builds and tests a preset; for ci_stage
#   ci_build_ahead NAME           begins to build a preset, at idle priority, beside the next stage
#   ci_wait_for_build             waits until that build ends
#   ci_summary                    prints failures, differences from .ci/manifest, the slowest tests, and last
#                                 the number of tests; returns 1 if anything failed
# shellcheck shell=bash

ci_clean_environment() {
    if [ -n "${GENTABLES_CI:-}" ]; then return; fi
    local keep=() name
    # Tests on recorded inputs need the folder of these; without it they are skipped.
    if [ -z "${GENTABLES_DATA:-}" ] && [ -d ../shared/data ]; then
        GENTABLES_DATA=$(cd ../shared/data && pwd)
    fi
    for name in HOME GENTABLES_DATA GENTABLES_CUDA12 GENTABLES_NIGHTLY_FOLDER GENTABLES_READERS http_proxy \
        https_proxy no_proxy TERM; do
        if [ -n "${!name:-}" ]; then keep+=("$name=${!name}"); fi
    done
    exec env -i GENTABLES_CI=1 CI=true LANG=C.UTF-8 "${keep[@]}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash "$0" "$@"
}

stages=()
results=$(mktemp -d)
ahead=
trap 'if [ -n "$ahead" ]; then kill -- "-$ahead"; fi; rm -rf "$results"' EXIT

ci_stage() {
    local name=$1 started=$SECONDS code=0
    shift
    echo "== $name: $*"
    "$@" 2>&1 | tee "$results/$name.log" || code=$?
    stages+=("$name:$code:$((SECONDS - started))")
    echo "== $name: exit code $code, $((SECONDS - started)) s"
}

ci_preset() {
    local name=$1
    shift
    cmake --preset "$name" && cmake --build --preset "$name" &&
        ctest --preset "$name" --output-junit "$results/$name.xml" "$@"
}

# The build waits until the next stage has configured its own: by then all packages are installed. Errors are
# left to the stage of the preset, which builds again what failed here.
ci_build_ahead() {
    set -m # a process group, so that all of it can be stopped
    (
        until [ -e build/build.ninja ]; do sleep 1; done
        chrt -i -p 0 "$BASHPID" || renice 19 "$BASHPID"
        cmake --preset "$1" && cmake --build --preset "$1"
    ) >"$results/ahead.log" 2>&1 &
    ahead=$!
    set +m
}

ci_wait_for_build() {
    # A first stage that fails early never configures.
    [ -e build/build.ninja ] || kill -- "-$ahead"
    wait "$ahead" 2>/dev/null
    ahead=
}

ci_summary() {
    local program
    for program in build*/bin/gentables; do
        if [ -x "$program" ]; then break; fi
    done
    if [ ! -x "$program" ]; then
        echo "gentables was not built"
        echo "0 passed, 1 failed, 0 skipped"
        return 1
    fi
    "$program" lua .ci/summary.lua "$results" .ci/manifest "${stages[@]}"
}
