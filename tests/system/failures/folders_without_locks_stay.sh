#!/bin/sh
# Temporary folders that cannot be locked: another folder of the same name removes none of them, and the end
# of the run removes all of them. FAIL_AT, FAIL_IN: fail_at.c and its library.
. "$SOURCE/tests/lib.sh"

TMPDIR=$WORK/temporary
export TMPDIR
mkdir "$TMPDIR"
cat >"$WORK/folders.lua" <<'END_OF_LUA'
local file, scratch = require "core.file", require "system.scratch"
local one <close> = scratch.folder("gentables-test")
local other <close> = scratch.folder("gentables-test")
assert(file.exists(one.path) and file.exists(other.path), "a folder is removed")
print("both are there")
END_OF_LUA

# runs FROM TO: while these locks fail.
runs() {
    ends_with 0 "$FAIL_AT" "$FAIL_IN" lock "$1" "$2" 60 "$WORK/out" "$WORK/err" \
        "$GENTABLES" lua "$WORK/folders.lua"
    grep -q " end exit 0 left 0$" "$stdout" || die "with locks $1 to $2 failing: $(cat "$WORK/err")"
    grep -qx "both are there" "$WORK/out" || die "with locks $1 to $2 failing: no end"
    left=$(find "$TMPDIR" -mindepth 1)
    [ -z "$left" ] || die "with locks $1 to $2 failing: left behind: $left"
}
runs 1 1
runs 2 2
runs 1 9
