#!/bin/sh
# edited_generator_compiles_nothing.sh GENERATOR: after an edit of the generator that changes no rendered
# text, the kernels of the bench are rendered once and not compiled; after an edit of their template they are
# compiled. Builds the bench of a copy of the sources with the installed program.
. "$(dirname -- "$0")/lib.sh"

begin "edited_generator_$1"
source=$work/source
own_prefix
program=$prefix/bin/gentables
mkdir "$source"
for folder in bench cmake generator templates; do cp -R "$GENTABLES_SOURCE/$folder" "$source"; done
GENTABLES_HOME=$source
export GENTABLES_HOME
cat >"$source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(edited LANGUAGES C)
add_executable(gentables IMPORTED)
set_target_properties(gentables PROPERTIES IMPORTED_LOCATION "$program")
include(cmake/render.cmake)
add_subdirectory(bench)
END
passes cmake -S "$source" -B "$build" -G "$1" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON

# make_kernels: builds the kernels, and lists in $output which objects and stamps are new.
make_kernels() {
    touch "$work/before"
    passes target gentables_kernels_portable
    find "$build" -newer "$work/before" \( -name '*.o' -o -name '*.stamp' \) >"$output"
}

make_kernels
printed kernels.c.o
printed kernels.c.stamp

echo "-- a line more" >>"$source/generator/lists/lists.lua"
touch "$program"
make_kernels
printed kernels.c.stamp
printed lists.h.stamp
if grep -F .o "$output"; then die "nothing should be compiled"; fi
make_kernels
if [ -s "$output" ]; then die "it should be rendered once"; fi

echo "/* a line more */" >>"$source/templates/bench/kernels.c.tmpl"
make_kernels
printed kernels.c.stamp
printed kernels.c.o
echo "/* a line more */" >>"$source/templates/bench/lists.h.tmpl"
make_kernels
printed lists.h.stamp
printed kernels.c.o
