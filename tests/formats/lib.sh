# What the shell tests of formats share; see gentables_scripts in tests/CMakeLists.txt for its variables.
# shellcheck shell=sh
. "$SOURCE/tests/generator/lib.sh"
# shellcheck disable=SC2034
golden=$SOURCE/tests/golden/sm90

# compilers LANGUAGE: those of gcc and clang (g++ and clang++ where LANGUAGE is c++) that are here.
compilers() {
    if [ "$1" = c++ ]; then set -- g++ clang++; else set -- gcc clang; fi
    for compiler; do command -v "$compiler" || :; done
}

# has PATTERN FILE: the file has a line with this extended expression.
has() {
    grep -Eq -- "$1" "$2" || die "$2 lacks $1: $(cat "$2")"
}
