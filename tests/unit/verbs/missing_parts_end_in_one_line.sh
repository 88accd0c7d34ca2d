#!/bin/sh
# A program without its other files, or without a library that they need, ends with one line: where it looked,
# what is missing, and what to do. Files of the current folder do not run in place of missing ones.
# shellcheck disable=SC2086 # $reads_json is words
. "$SOURCE/tests/lib.sh"

parts=$(dirname "$GENTABLES")/..
reads_json="regret --table $golden/thresholds.json --rows $golden/benchmark.tp2.sm90.csv"
program() { # FOLDER: a program beside all of its parts
    mkdir -p "$1/bin" "$1/share" "$1/lib"
    cp "$GENTABLES" "$1/bin/gentables"
    cp -RL "$parts/share/gentables" "$1/share/gentables"
    cp -R "$parts/lib/gentables" "$1/lib/gentables"
}

# Moved alone, in a folder with files of the names that it looks for.
mkdir -p "$WORK/moved/bin" "$WORK/moved/core"
cp "$GENTABLES" "$WORK/moved/bin/gentables"
cd "$WORK/moved"
echo 'return { main = function() print "files of the current folder run" return 0 end }' >verbs.lua
looked_in="$WORK/moved/share/gentables/generator, $WORK/moved/lib/gentables"
belongs='the program belongs in a folder bin beside lib/gentables and share/gentables'
ends_in_one_line 1 "module 'verbs' not found in $looked_in; $belongs" bin/gentables report
GENTABLES_HOME=$WORK/none ends_in_one_line 1 "not found in $WORK/none/generator," bin/gentables --version

# A part is missing: a module of Lua, one that is loaded, and one that not every build has.
program "$WORK/partly"
rm "$WORK/partly/share/gentables/generator/verbs/merge.lua"
ends_in_one_line 1 "verbs.lua:[0-9]+: module 'verbs.merge' not found in $WORK/partly/share/" \
    "$WORK/partly/bin/gentables" merge
rm "$WORK/partly/lib/gentables/core/"*
mkdir -p core
echo 'print "files of the current folder run"' | tee core/json.lua core/sqlite.lua >/dev/null
ends_in_one_line 1 "module 'core.json' not found in" "$WORK/partly/bin/gentables" $reads_json
ends_in_one_line 2 'needs SQLite, and this gentables was built without it' \
    "$WORK/partly/bin/gentables" history report --database "$WORK/none.db"

# Scripts may have modules of their own.
echo 'require "none.such"' >"$WORK/script.lua"
ends_in_one_line 1 "script.lua:1: module 'none.such' not found in .* and package.path;" \
    "$GENTABLES" lua "$WORK/script.lua"
echo 'return 7' >mine.lua
echo 'return require "mine"' >"$WORK/script.lua"
ends_with 7 "$GENTABLES" lua "$WORK/script.lua"

# A library that a part needs is missing.
program "$WORK/unlinked"
for module in "$WORK/unlinked/lib/gentables/core/"*.so; do
    sed -i 's/libsimdjson\.so/libnowhere1.so/' "$module"
done
grep -q 'libnowhere1\.so' "$WORK/unlinked/lib/gentables/core/json.so" || skip "simdjson is linked statically"
unloaded="regret: $WORK/unlinked/lib/gentables/core/json.so cannot be loaded: libnowhere1.so"
ends_in_one_line 1 "$unloaded.*No such file or directory; install that library, or build gentables on" \
    "$WORK/unlinked/bin/gentables" $reads_json
