#!/bin/sh
# Fuzzes with one program for GENTABLES_FUZZ_SECONDS (600): sh run.sh PROGRAM CORPUS. The inputs it finds are
# kept below GENTABLES_NIGHTLY_FOLDER (default: the current folder), where the next run continues; an input
# that breaks the program is kept in `crashes` there. 1: such an input was found.
set -eu
program=$1 corpus=$2
name=$(basename "$program")
folder=${GENTABLES_NIGHTLY_FOLDER:-$PWD}
mkdir -p "$folder/corpus/$name" "$folder/crashes"
exec "$program" -max_total_time="${GENTABLES_FUZZ_SECONDS:-600}" -timeout=60 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$folder/crashes/$name-" "$folder/corpus/$name" "$corpus"
