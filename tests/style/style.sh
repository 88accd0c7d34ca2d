#!/bin/sh
# The layout and hygiene of the sources, one tool per call: clang-format, luacheck, shellcheck or line-length.
# Golden files, tables and corpora are output of programs; other tests check them.
#
#   sh tests/style/style.sh TOOL [FILE...]        only these files, as seen from the root; 77: no such tool
set -eu
cd "$(dirname -- "$0")/../.."

longest_line=110
tool=$1
shift
only=$(printf '%s\n' "$@")

# files PATTERN...: the sources with these names, of the given ones.
files() {
    all=$(for pattern in "$@"; do
        found=$(find CMakeLists.txt bench cmake generator packaging templates tests .ci \
            -name "$pattern" -type f ! -path 'tests/golden/*' ! -path 'tests/fuzz/corpus/*')
        if [ -z "$found" ]; then
            echo "FAILED: no file is called $pattern" >&2
            exit 1
        fi
        echo "$found"
    done)
    if [ -n "$only" ]; then echo "$all" | grep -Fx -- "$only" || :; else echo "$all"; fi
}

# each COMMAND...: runs it on the files that `list` prints, if there are any.
each() {
    # shellcheck disable=SC2086 # a list
    if [ -n "$list" ]; then "$@" $list; fi
}

# All scripts together are a slow proof: they take longer than all other sources.
proof_of_scripts() {
    WORK=$(mktemp -d) SOURCE=.
    trap 'rm -rf "$WORK"' EXIT
    . tests/proof.sh
    proof_name=style_shellcheck
    # shellcheck disable=SC2086 # a list
    proof_inputs .shellcheckrc $list -- "$(shellcheck --version)"
}

check_line_length() {
    list=$(files '*.[ch]' '*.cpp' '*.lua' '*.sh' '*.cmake' '*.in' CMakeLists.txt run nightly)
    each awk -v longest="$longest_line" 'length($0) > longest {
            printf "%s:%d: %d characters; maximum %d\n", FILENAME, FNR, length($0), longest
            found = 1
        } END { exit found }'
}

if [ "$tool" != line-length ] && ! command -v "$tool" >/dev/null; then
    echo "skipped: there is no $tool here"
    exit 77
fi
case $tool in
clang-format)
    list=$(files '*.[ch]' '*.cpp')
    each clang-format --dry-run -Werror
    ;;
luacheck)
    list=$(files '*.lua')
    each luacheck --quiet
    ;;
shellcheck)
    list=$(files '*.sh' run nightly)
    if [ -z "$only" ]; then proof_of_scripts; fi
    each shellcheck
    if [ -z "$only" ]; then proof_holds; fi
    ;;
line-length) check_line_length ;;
esac
