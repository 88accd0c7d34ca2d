#!/bin/sh
# What the target NAME-gen of gentables_add() runs: the sweep, then the tables from the rows that are there.
#
#   sweep_then_generate.sh GENTABLES SPEC DATA_DIR ARCH OPTION...     the OPTIONs are those of generate
#
# A sweep that could not measure every cell ends with 1 and keeps the rest: that is rendered all the same, so
# that one cell which always fails does not keep back the others; the exit code is still the sweep's. Wrong
# use and a signal end it at once.
set -eu

gentables=$1 spec=$2 data_dir=$3 arch=$4
shift 4

# Whether the folder has a rows file of the arch.
has_rows() {
    for rows in "$data_dir"/benchmark.tp*."$arch".csv; do
        if [ -e "$rows" ]; then return 0; fi
    done
    return 1
}

swept=0
"$gentables" sweep "$spec" --out "$data_dir" --arch "$arch" || swept=$?
if [ "$swept" -gt 1 ]; then exit "$swept"; fi
if [ "$swept" -eq 1 ] && ! has_rows; then exit 1; fi
generated=0
"$gentables" generate --data-dir "$data_dir" --arch "$arch" "$@" || generated=$?
if [ "$swept" -ne 0 ]; then exit "$swept"; fi
exit "$generated"
