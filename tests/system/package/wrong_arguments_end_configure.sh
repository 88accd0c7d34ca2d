#!/bin/sh
# gentables_add reports invalid arguments, and the configuration ends there.
. "$(dirname -- "$0")/lib.sh"

begin wrong_arguments
rm -rf "$project"
mkdir -p "$project/tables"

# refuses MESSAGE ARGUMENT...
refuses() {
    message=$1
    shift
    cat >"$project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(wrong LANGUAGES NONE)
find_package(GenTables REQUIRED)
gentables_add($*)
END
    fails cmake -S "$project" -B "$build" -DCMAKE_PREFIX_PATH="$GENTABLES_PREFIX"
    # CMake wraps its messages.
    tr -s ' \n' ' ' <"$output" >"$output.flat" && mv "$output.flat" "$output"
    printed "gentables_add: $message"
}

refuses "NAME is missing" ARCH sm90 DATA_DIR tables
refuses "ARCH is missing" NAME a DATA_DIR tables
refuses "DATA_DIR is missing" NAME a ARCH sm90
refuses "unknown: TABEL tables" NAME a ARCH sm90 DATA_DIR tables TABEL tables
refuses "without a value: TABLES" NAME a ARCH sm90 DATA_DIR tables TABLES
