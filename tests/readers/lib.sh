# Shared by the shell tests of formats; see gentables_scripts in tests/CMakeLists.txt for its variables.
# shellcheck shell=sh
. "$SOURCE/tests/lib.sh"

# compilers LANGUAGE: prints those of gcc and clang (g++ and clang++ if LANGUAGE is c++) that are installed.
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
    succeeds import "$read_file" --out "$written" "$@"
}

# refuses PATTERN FILE OPTION...: expects one line with PATTERN; nothing is written.
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

# lines FILE COUNT: expects this number of lines in the file.
lines() {
    [ "$(wc -l <"$1")" = "$2" ] || { cat "$1" && die "$1 has not $2 lines"; }
}

# mpich_defaults FOLDER: what generate --mpich leaves there, of a made-up MPICH with three collectives.
mpich_defaults() {
    leaf='{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}}'
    printf '{"collective=bcast":{"algorithm=MPIR_Bcast_intra_binomial":{}},%s,%s}\n' \
        "\"collective=allreduce\":{\"comm_type=intra\":$leaf,\"comm_type=inter\":{\"algorithm=MPIR_I\":{}}}" \
        '"collective=barrier":{"algorithm=MPIR_Barrier_intra_dissemination":{}}' >"$1/mpich_defaults.json"
}
