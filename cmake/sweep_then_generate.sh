#!/bin/sh
# The command of the targets NAME-gen and (with --refine) NAME-refine of gentables_add(): a sweep, then the
# tables from the rows.
#
#   sweep_then_generate.sh [--refine] GENTABLES SPEC DATA_DIR ARCH HISTORY OPTION...
#
# HISTORY gets the new rows, too, unless it is `none`. The OPTIONs are those of generate.
#
# If some cells cannot be measured, the sweep ends with exit code 1 and keeps the others. The tables are
# rendered from those, so that a cell that always fails does not prevent all tables; the exit code is still 1.
# Wrong use (2) and signals end the script at once.
set -eu

refine=
if [ "$1" = --refine ]; then
    refine=$1
    shift
fi
gentables=$1 spec=$2 data_dir=$3 arch=$4 history=$5
shift 5
if [ "$history" = none ]; then history=; fi

# Whether the folder has a rows file of the arch.
has_rows() {
    for rows in "$data_dir"/benchmark.tp*."$arch".csv; do
        if [ -e "$rows" ]; then return 0; fi
    done
    return 1
}

swept=0
"$gentables" sweep "$spec" --out "$data_dir" --arch "$arch" ${refine:+"$refine"} \
    ${history:+--history "$history"} || swept=$?
if [ "$swept" -gt 1 ]; then exit "$swept"; fi
if [ "$swept" -eq 1 ] && ! has_rows; then exit 1; fi
generated=0
"$gentables" generate --data-dir "$data_dir" --arch "$arch" "$@" || generated=$?
if [ "$swept" -ne 0 ]; then exit "$swept"; fi
exit "$generated"
