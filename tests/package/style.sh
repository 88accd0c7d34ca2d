#!/bin/sh
# The layout and hygiene of the sources, one tool per call: clang-format, luacheck, shellcheck or line-length.
# Golden files, tables and corpora are what programs write, and are judged by other tests.
#
#   sh tests/package/style.sh clang-format          77: the tool is not here
set -eu
cd "$(dirname -- "$0")/../.."

longest_line=110

# files PATTERN...: the sources of these names.
files() {
    for pattern in "$@"; do
        found=$(find CMakeLists.txt bench cmake generator templates tests .ci -name "$pattern" -type f \
            ! -path 'tests/golden/*' ! -path 'tests/consumer/tables/*' ! -path 'tests/fuzz/corpus/*')
        if [ -z "$found" ]; then
            echo "FAILED: there is no file called $pattern" >&2
            exit 1
        fi
        echo "$found"
    done
}

# each COMMAND...: runs it on the files that `list` names.
each() {
    # shellcheck disable=SC2086 # a list
    "$@" $list
}

check_line_length() {
    list=$(files '*.[ch]' '*.cpp' '*.lua' '*.sh' '*.cmake' '*.in' CMakeLists.txt run)
    each awk -v longest="$longest_line" 'length($0) > longest {
            printf "%s:%d: %d characters; maximum %d\n", FILENAME, FNR, length($0), longest
            found = 1
        } END { exit found }'
}

if [ "$1" != line-length ] && ! command -v "$1" >/dev/null; then
    echo "skipped: there is no $1 here"
    exit 77
fi
case $1 in
clang-format)
    list=$(files '*.[ch]' '*.cpp')
    each clang-format --dry-run -Werror
    ;;
luacheck) luacheck --quiet generator templates tests ;;
shellcheck)
    list=$(files '*.sh' run)
    each shellcheck
    ;;
line-length) check_line_length ;;
esac
