#!/bin/sh
# The arithmetic of translated PTX has the results of instructions.expected, bit for bit, for values at the
# borders of formats. CXX, ENGINE, GENERATED: see lib_planted.sh.
. "$SOURCE/tests/lib.sh"
here=$SOURCE/tests/bench/cuda/ptx translator=$SOURCE/tests/stand_ins/ptx
"$GENTABLES" lua "$here/instructions.lua" "$WORK"
"$GENTABLES" lua "$translator/translate.lua" "$WORK/instructions.ptx" >"$WORK/translated.cpp"
for unit in "$WORK/translated.cpp" "$here/instructions.cpp" "$here/ptx_ranges.cpp"; do
    "$CXX" -std=c++17 -O1 -ffp-contract=off -w -I "$translator" -I "$SOURCE/tests/stand_ins/engine" \
        -I "$SOURCE/bench/cuda/kernels" -I "$SOURCE/bench" -I "$GENERATED" -c "$unit" \
        -o "$WORK/$(basename "$unit").o"
done
"$CXX" "$WORK"/*.o "$ENGINE" -lm -o "$WORK/instructions"
"$WORK/instructions" "$WORK" >"$WORK/results"
diff "$here/instructions.expected" "$WORK/results" ||
    die "other results; all of them: $WORK/instructions $WORK all"

# A form that is not in the table is an error with file, line, kernel and form.
sed 's/^add\.s32/add.sat.s32/' "$WORK/instructions.ptx" >"$WORK/unknown.ptx"
line=$(grep -n '^add\.sat' "$WORK/unknown.ptx" | cut -d : -f 1)
if "$GENTABLES" lua "$translator/translate.lua" "$WORK/unknown.ptx" >"$WORK/out" 2>&1; then
    die "an unknown form is translated"
fi
printed out "^FAILED: $WORK/unknown.ptx:$line: instructions: unknown instruction form: add.sat.s32\$"
