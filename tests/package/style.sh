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
        find CMakeLists.txt bench cmake generator templates tests .ci -name "$pattern" -type f \
            ! -path 'tests/golden/*' ! -path 'tests/consumer/tables/*' ! -path 'tests/fuzz/corpus/*'
    done
}

check_line_length() {
    files '*.[ch]' '*.cpp' '*.lua' '*.sh' '*.cmake' '*.in' CMakeLists.txt run |
        xargs awk -v longest="$longest_line" 'length($0) > longest {
            printf "%s:%d: %d characters; at most %d would be right\n", FILENAME, FNR, length($0), longest
            found = 1
        } END { exit found }'
}

if [ "$1" != line-length ] && ! command -v "$1" >/dev/null; then
    echo "skipped: there is no $1 here"
    exit 77
fi
case $1 in
clang-format) files '*.[ch]' '*.cpp' '*.cu' | xargs clang-format --dry-run -Werror ;;
luacheck) luacheck --quiet generator templates tests ;;
shellcheck) files '*.sh' run | xargs shellcheck ;;
line-length) check_line_length ;;
esac
