#!/bin/sh
# A user who watches TMPDIR gets hold of nothing that any verb of gentables makes there, while it compiles and
# starts programs. A name that is taken first and made a folder later would be lost to that user.
. "$(dirname "$0")/../../lib.sh"
needs cc gnuplot
[ "$(id -u)" = 0 ] || skip "not root, so there is no other user"

if grep -rnE 'os\.tmpname|io\.tmpfile|tmpnam|tempnam|mktemp\(|mktemp -u' "$SOURCE/generator" "$SOURCE/bench" \
    "$SOURCE/cmake" "$SOURCE/templates"; then
    die "temporary names that are not made with their files"
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

# A job of each verb, and of each module that starts processes or makes temporary folders.
code=0
"$GENTABLES" lua "$SOURCE/tests/system/security/lib_watched.lua" "$log" >"$stdout" 2>"$stderr" || code=$?
: >"$TMPDIR/last"
ends=$(($(date +%s) + 60))
until grep -q '^seen last$' "$log"; do
    [ "$(date +%s)" -lt "$ends" ] || die "the watcher does not see the last file"
done
took=$(grep '^took' "$log" | sort -u)
[ -z "$took" ] || die "another user got hold of temporary files: $took"
[ "$code" = 0 ] || die "jobs fail or are missing"
cat "$stdout"

# The watcher has seen each kind of temporary files.
grep -rhoE 'scratch\.folder\("[^"]+' "$SOURCE/generator" | sed 's/.*"//' | sort -u >"$WORK/names"
if [ -n "${STAND_INS:-}" ]; then # of benches on GPUs
    grep -rhoE 'gentables-[a-z-]+-XXXXXX' "$SOURCE/bench" | sed 's/-XXXXXX//' | sort -u >>"$WORK/names"
fi
while read -r name; do has "^seen ${name}[.-]" "$log"; done <"$WORK/names"

# What is removed is the user's own.
mkdir "$TMPDIR/others"
chown 65534 "$TMPDIR/others"
echo 'require("core.file").remove_tree(arg[1])' >"$WORK/remove.lua"
succeeds lua "$WORK/remove.lua" "$TMPDIR/others"
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
    mkdir -m 700 "$TMPDIR/more" # it looks into folders after any event
    rmdir "$TMPDIR/more"
done
