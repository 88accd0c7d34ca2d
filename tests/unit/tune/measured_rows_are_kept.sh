#!/bin/sh
# The rows of one number of ranks are kept, reported and chosen whatever happens with another number: if that
# cannot start, and if it is interrupted. A file of the cache is shared: the last writer keeps the entries of
# the earlier one. No input file of a pass is left.
. "$(dirname "$0")/lib.sh"

# With four ranks it fails, or hangs.
launcher <<'END'
if [ "$ranks" = 4 ]; then
    [ -z "${HANGS:-}" ] || { : >"$HANGS"; exec sleep 1000; }
    exit 3
fi
END
mkdir "$WORK/temporary"
with_cache() {
    cache=$1
    shift
    tune --op allgather --sizes 1K --dtype float32 --strategies MPI,DIRECT --cache "$WORK/$cache.json" \
        --launcher "$WORK/launcher {ranks}" "$@"
}

with_cache one --tp 2,4 --out "$WORK/tuned"
[ "$status" = 1 ] || fail "a start that fails at TP 4 ended with $status"
printed err "TP 4: the group failed: exit code 3.*; every op takes its default, MPI, there"
printed out "1 KiB *\(MPI\|DIRECT\)  *[0-9.]* us"
printed out "1 KiB *MPI$"
printed out "one launch: "
grep -q '"allgather", 2, ' "$WORK/tuned/gentables_tuned.py" || fail "TP 2 is not in the module"
with_cache one --tp 2
printed out "all results are from the cache"
printed out "one launch: "
with_cache one --tp 4
[ "$status" = 1 ] || fail "TP 4 alone ended with $status"
! grep -q "one launch" "$WORK/out" || fail "one launch of nothing: $(cat "$WORK/out")"

# Interrupted with four ranks, after two ranks have finished.
HANGS=$WORK/hangs TMPDIR=$WORK/temporary "$GENTABLES" tune --bench "$BENCH" --samples 5 --warm-up 1 --tp 2,4 \
    --op allgather --sizes 1K --dtype float32 --strategies MPI,DIRECT --cache "$WORK/two.json" \
    --launcher "$WORK/launcher {ranks}" >"$WORK/out" 2>"$WORK/err" &
process=$!
while [ ! -e "$WORK/hangs" ]; do
    kill -0 "$process" 2>/dev/null || fail "it ended before it was interrupted: $(cat "$WORK/err")"
    sleep 0.1
done
for input in "$WORK/temporary/gentables-tune-pass."*; do
    [ -e "$input" ] || fail "no input of a pass: $(ls "$WORK/temporary")"
done
kill -TERM "$process"
status=0
wait "$process" || status=$?
[ "$status" = 143 ] || fail "interrupted, it ended with $status: $(cat "$WORK/err")"
[ -z "$(ls -A "$WORK/temporary")" ] || fail "left behind: $(ls -A "$WORK/temporary")"
with_cache two --tp 2
printed out "all results are from the cache"

# Two runs that read the same file: the one that ends first is the launcher of the other.
cat >"$WORK/busy" <<'END'
#!/bin/sh
"$GENTABLES" tune --bench "$BENCH" --samples 5 --warm-up 1 --op broadcast --sizes 1K --dtype float32 \
    --strategies MPI,DIRECT --cache "$CACHE" --launcher "$LAUNCHER {ranks}" >"$CACHE.out" 2>&1
exec "$LAUNCHER" "$@"
END
chmod +x "$WORK/busy"
CACHE=$WORK/three.json LAUNCHER=$WORK/launcher
export CACHE LAUNCHER GENTABLES BENCH
tuned --op allgather --sizes 1K --dtype float32 --strategies MPI,DIRECT --cache "$CACHE" \
    --launcher "$WORK/busy {ranks}"
tune --op broadcast --sizes 1K --dtype float32 --strategies MPI,DIRECT --cache "$CACHE" \
    --launcher "$LAUNCHER {ranks}"
printed out "all results are from the cache"
tune --op allgather --sizes 1K --dtype float32 --strategies MPI,DIRECT --cache "$CACHE" \
    --launcher "$WORK/busy {ranks}"
printed out "all results are from the cache"
