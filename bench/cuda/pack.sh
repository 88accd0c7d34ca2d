#!/bin/sh
# Fills the folder that is copied to a machine with a GPU, where `sh verify.sh .` runs it: the program, and
# the sources, from which rebuild.sh builds it if it does not start. The build calls sh pack.sh BENCH-SOURCES
# GENERATED PROGRAM FOLDER SOURCE...
set -eu
bench=$1 generated=$2 program=$3 folder=$4
shift 4
rm -rf "$folder/source"
mkdir -p "$folder/source/generated"
cp "$program" "$bench/cuda/verify.sh" "$bench/cuda/rebuild.sh" "$folder"
(cd "$bench" && find . -name '*.h' ! -path './workload/*' ! -path './replay/*') >"$folder/headers"
while read -r name; do set -- "$@" "$name"; done <"$folder/headers"
rm "$folder/headers"
for name in "$@"; do
    mkdir -p "$folder/source/bench/$(dirname "$name")"
    cp "$bench/$name" "$folder/source/bench/$name"
done
cp "$bench"/cuda/*.c "$folder/source/bench/cuda"
for room in device self_test; do cp "$bench/cuda/$room"/*.c "$folder/source/bench/cuda/$room"; done
cp "$generated"/*.h "$generated/kernels.c" "$folder/source/generated"
cp "$generated"/cuda/*.[ch] "$generated"/cuda/*.cu "$folder/source/generated"
