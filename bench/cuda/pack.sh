#!/bin/sh
# Fills the folder that is taken to a machine with a GPU, to be run there by `sh verify.sh .`: the program,
# and the sources, for where it does not start. sh pack.sh BENCH-SOURCES GENERATED PROGRAM FOLDER SOURCE...;
# the build calls it.
set -eu
bench=$1 generated=$2 program=$3 folder=$4
shift 4
rm -rf "$folder/source"
mkdir -p "$folder/source/bench/host" "$folder/source/bench/cuda" "$folder/source/generated"
cp "$program" "$bench/cuda/verify.sh" "$bench/cuda/rebuild.sh" "$folder"
for name in "$@"; do cp "$bench/$name" "$folder/source/bench/$name"; done
cp "$bench"/*.h "$folder/source/bench"
cp "$bench"/host/*.h "$folder/source/bench/host"
cp "$bench"/cuda/*.[ch] "$folder/source/bench/cuda"
cp "$generated/lists.h" "$generated/kernels.c" "$folder/source/generated"
cp "$generated"/cuda/*.[ch] "$generated"/cuda/*.cu "$folder/source/generated"
