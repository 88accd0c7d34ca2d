#!/bin/sh
# trtllm_compiles_the_rendered_header.sh GENERATOR: a project with TensorRT-LLM's structure compiles the
# header of the build tree, made before its targets; the header depends on the SM versions and the rows; the
# copy in the sources is refreshed only on request.
. "$(dirname -- "$0")/lib.sh"

begin "trtllm_$1"
rm -r "$project"
cp -R "$GENTABLES_SOURCE/tests/system/consumer_trtllm" "$project"
cp -R "$GENTABLES_SOURCE/tests/unit/formats/trtllm" "$project/stand_ins"
copy=$project/cpp/tensorrt_llm/common/customAllReduceUtils.h
targets=$(grep '^  TARGETS ' "$project/CMakeLists.txt")
grep -Fxq "$targets" "$GENTABLES_SOURCE/docs/trtllm.md" || die "docs/trtllm.md has other targets"
configure -G "$1"
passes cmake --build "$build" --parallel 2
passes "$build/which"
printed "2 tables, 4" # 80 and 90 use SM 90, 103 uses SM 100; nothing reaches SM 120
grep -q '#error' "$copy" || die "the build wrote to the sources"

touch "$work/before"
passes cmake --build "$build"
find "$build" -newer "$work/before" \( -name '*.o' -o -name '*.stamp' -o -name '*.h' \) >"$output"
if [ -s "$output" ]; then die "the second build should do nothing"; fi

# Other SM versions, then other rows.
configure -G "$1" -DCMAKE_CUDA_ARCHITECTURES_ORIG="120"
passes cmake --build "$build"
passes "$build/which"
printed "1 tables, 5"
sed -i 's/6\.5/16.5/' "$project/cpp/tables/sm120/benchmark.tp2.sm120.csv"
passes cmake --build "$build"
passes "$build/which"
printed "1 tables, 0"

# The copy in the sources: checked, then refreshed, with all SM versions, even beside a folder of that name.
fails target trtllm-tables-check
printed "--target trtllm-tables-render"
passes target render-tables
grep -q 'for SM 90, 100, 120\.' "$copy" || die "the copy was not refreshed"
passes target check-tables
passes cmake --build "$build" --target clean
[ -s "$copy" ] || die "clean took the copy in the sources"

# A missing target, and no rows.
sed -i 's/common_src kernels_src .*/common_src nowhere/' "$project/CMakeLists.txt"
fails cmake "$build"
printed "no target nowhere"
rm -r "$project"/cpp/tables/sm*
fails cmake "$build"
printed "no benchmark.tp{N}.smXX.csv in"
