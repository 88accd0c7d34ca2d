#!/bin/sh
# Every folder of tables/ has rows, and its other files are those that the rows give, apart from tables/gpu,
# which is a spec alone. One argument: the program.
set -eu
gentables=$1
cd "$(dirname -- "$0")/../.."

checked=0
for folder in tables/*/; do
    arch=$(basename "$folder")
    if [ "$arch" = gpu ]; then continue; fi
    ls "$folder"benchmark.tp*."$arch".csv
    "$gentables" check --data-dir "$folder" --arch "$arch" --tables "$folder"
    checked=$((checked + 1))
done
if [ "$checked" -eq 0 ]; then
    echo "FAILED: no folder below tables/"
    exit 1
fi
