# Shared by the tests of cmake/dev.sh, $dev: machines simulated by links and stand-ins in PATH. Sourced, with
# the folder $work.
# shellcheck shell=sh disable=SC2034,SC2154
set -eu
dev=$(cd "$(dirname -- "$0")/../.." && pwd)/cmake/dev.sh
output=$work/output

die() {
    cat "$output"
    echo "FAILED: $1"
    exit 1
}

# machine TOOL...: a PATH with these and the programs that the script itself uses. `log` records the calls of
# stand-ins.
machine() {
    rm -rf "$work"
    mkdir -p "$work/bin"
    for tool in sh cat dirname env id sed tr "$@"; do
        ln -s "$(command -v "$tool")" "$work/bin/$tool"
    done
}

# stand_in NAME [COMMAND]: a program that records its arguments, and then runs COMMAND. A link of that name is
# removed first: writing through it would overwrite the machine's own program.
stand_in() {
    rm -f "$work/bin/$1"
    printf '#!/bin/sh\necho "%s $*" >>"%s/log"\n%s\n' "$1" "$work" "${2:-}" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

has() {
    grep -qF -- "$1" "$2" || die "$2 should hold: $1"
}

# needs_tools TOOL...: skips the test where one of them is not found.
needs_tools() {
    for tool in "$@"; do
        if ! command -v "$tool" >/dev/null; then
            echo "skipped: there is no $tool here"
            exit 77
        fi
    done
}
