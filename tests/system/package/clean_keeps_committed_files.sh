#!/bin/sh
# clean_keeps_committed_files.sh GENERATOR: cleaning removes files of the build, and no committed files.
. "$(dirname -- "$0")/lib.sh"

begin "clean_$1"
configure -G "$1"
passes cmake --build "$build"
passes target allreduce-render
passes target clean
same_tables
header=$build/gentables/allreduce-include/allreduce/allreduce_table.h
if [ -e "$header" ]; then die "the rendered header should be gone"; fi
passes cmake --build "$build"
passes "$build/server"
