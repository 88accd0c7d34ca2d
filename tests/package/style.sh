#!/bin/sh
# The layout and hygiene of the sources, one tool per call: clang-format, luacheck, shellcheck or line-length.
# Golden files, tables and corpora are what programs write, and are judged by other tests.
#
#   sh tests/package/style.sh TOOL [FILE...]        only these files, as seen from the root; 77: no such tool
set -eu
cd "$(dirname -- "$0")/../.."

longest_line=110
tool=$1
shift
only=$(printf '%s\n' "$@")

# files PATTERN...: the sources of these names, of those that were given.
files() {
    for pattern in "$@"; do
        find CMakeLists.txt bench cmake generator templates tests .ci -name "$pattern" -type f \
            ! -path 'tests/golden/*' ! -path 'tests/consumer/tables/*' ! -path 'tests/fuzz/corpus/*'
    done | if [ -n "$only" ]; then grep -Fx -- "$only" || :; else cat; fi
}

check_line_length() {
    files '*.[ch]' '*.cpp' '*.lua' '*.sh' '*.cmake' '*.in' CMakeLists.txt run nightly |
        xargs -r awk -v longest="$longest_line" 'length($0) > longest {
            printf "%s:%d: %d characters; at most %d would be right\n", FILENAME, FNR, length($0), longest
            found = 1
        } END { exit found }'
}

if [ "$tool" != line-length ] && ! command -v "$tool" >/dev/null; then
    echo "skipped: there is no $tool here"
    exit 77
fi
case $tool in
clang-format) files '*.[ch]' '*.cpp' '*.cu' | xargs -r clang-format --dry-run -Werror ;;
luacheck) files '*.lua' | xargs -r luacheck --quiet ;;
shellcheck) files '*.sh' run nightly | xargs -r shellcheck ;;
line-length) check_line_length ;;
esac
