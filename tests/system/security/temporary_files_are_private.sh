#!/bin/sh
# A user who watches TMPDIR gets hold of nothing that gentables makes there, while it compiles and starts
# programs. A name that is taken first and made a folder later would be lost to that user.
. "$(dirname "$0")/../../lib.sh"
needs cc gnuplot
[ "$(id -u)" = 0 ] || skip "not root, so there is no other user"

if grep -rnE 'os\.tmpname|io\.tmpfile|tmpnam|tempnam|mktemp\(|mktemp -u' "$SOURCE/generator" "$SOURCE/cmake" \
    "$SOURCE/templates"; then
    die "temporary names that are not made by scratch.folder"
fi

log=$WORK/log
TMPDIR=$WORK/tmp
export TMPDIR
mkdir "$TMPDIR"
chmod 1777 "$TMPDIR"
cc -O1 -D_GNU_SOURCE -o "$WORK/watcher" "$SOURCE/tests/system/security/watcher.c"
(cd "$TMPDIR" && exec "$WORK/watcher" 65534 "$log") &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || :' EXIT
until grep -q 'seen all' "$log" 2>/dev/null; do
    kill -0 "$watcher" 2>/dev/null || die "the watcher has ended"
done

cat >"$WORK/spec.lua" <<'SPEC'
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 64, 128 }, num_tokens = { 1, 4 },
  strategies = { "MPI", "ONESHOT", "TWOSHOT" } }
SPEC
ends_with 0 "$GENTABLES" sweep "$WORK/spec.lua" --out "$WORK/rows" --bench "$STAND_IN" \
    --launcher 'env RANKS={ranks}'
ends_with 0 "$GENTABLES" generate --data-dir "$WORK/rows" --arch host --out "$WORK/tables"
ends_with 0 "$GENTABLES" check --data-dir "$WORK/rows" --arch host --tables "$WORK/tables"
ends_with 0 "$GENTABLES" regret --table "$WORK/tables/allreduce_table.h" \
    --rows "$WORK/rows/benchmark.tp2.host.csv"
ends_with 0 "$GENTABLES" report --data-dir "$WORK/rows" --arch host --out "$WORK/report"
ends_with 0 "$GENTABLES" plot --data-dir "$WORK/rows" --arch host --out "$WORK/plots" --format png
for name in gentables-lookup gentables-font gentables-picture; do has "^seen $name" "$log"; done
if grep '^took' "$log"; then die "another user got hold of temporary files"; fi

# What is removed is the user's own.
mkdir "$TMPDIR/others"
chown 65534 "$TMPDIR/others"
echo 'require("core.file").remove_tree(arg[1])' >"$WORK/remove.lua"
ends_with 0 "$GENTABLES" lua "$WORK/remove.lua" "$TMPDIR/others"
[ -d "$TMPDIR/others" ] || die "a folder of another user was removed"

# The watcher does get hold of a name that is taken first and made a folder later, if that takes long enough.
ends=$(($(date +%s) + 60))
name=$TMPDIR/old
: >"$name"
rm "$name"
until [ -d "$name" ]; do [ "$(date +%s)" -lt "$ends" ] || die "the watcher makes no folder"; done
mkdir -p "$name"
: >"$name/lookup"
until grep -q '^took old: others use the planted folder' "$log"; do
    [ "$(date +%s)" -lt "$ends" ] || die "the watcher takes nothing"
    : >"$TMPDIR/more" # it looks into folders after any event
    rm -rf "$TMPDIR/more"
done
