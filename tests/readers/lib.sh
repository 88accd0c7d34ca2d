# What the shell tests of formats share; see gentables_scripts in tests/CMakeLists.txt for its variables.
# shellcheck shell=sh
. "$SOURCE/tests/lib.sh"

# compilers LANGUAGE: those of gcc and clang (g++ and clang++ where LANGUAGE is c++) that are here.
compilers() {
    if [ "$1" = c++ ]; then set -- g++ clang++; else set -- gcc clang; fi
    for compiler; do command -v "$compiler" || :; done
}

# shellcheck disable=SC2034
inputs=$SOURCE/tests/readers/inputs

# imports FILE OUT OPTION...: reads it.
imports() {
    read_file=$1
    written=$2
    shift 2
    ends_with 0 "$GENTABLES" import "$read_file" --out "$written" "$@"
}

# refuses PATTERN FILE OPTION...: ends in one line that says this; nothing is written.
refuses() {
    pattern=$1
    shift
    rm -rf "$WORK/none"
    rejects "$pattern" import "$@" --out "$WORK/none/out.csv"
    [ ! -e "$WORK/none" ] || die "wrote something: $pattern"
}

# has_lines FILE LINE...: these lines are in the file, whole.
has_lines() {
    searched=$1
    shift
    for line in "$@"; do
        grep -Fxq -- "$line" "$searched" || { cat "$searched" && die "$searched lacks: $line"; }
    done
}

# lines FILE COUNT: the file has that many.
lines() {
    [ "$(wc -l <"$1")" = "$2" ] || { cat "$1" && die "$1 has not $2 lines"; }
}
