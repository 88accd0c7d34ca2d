#!/bin/sh
# A cache hit on one rank and a miss on another are impossible: all ranks measure rank 0's requests, whatever
# caches exist. Rank 0 runs where the cache is empty, rank 1 where it is complete; the cells that are missing
# in the cache of the verb are measured.
. "$(dirname "$0")/../../unit/tune/lib.sh"

cat >"$WORK/launcher" <<'END'
#!/bin/sh
shift
for word; do
    case $previous in --pass) cp "$word" "$INPUT" ;; esac
    previous=$word
done
exec $MPIRUN -n 1 env XDG_CACHE_HOME="$EMPTY" HOME="$EMPTY" "$@" : \
    -n 1 env XDG_CACHE_HOME="$FULL" HOME="$FULL" "$@"
END
chmod +x "$WORK/launcher"
. "$SOURCE/tests/mpirun.sh"
INPUT=$WORK/input EMPTY=$WORK/empty FULL=$WORK/full MPIRUN=$mpirun
export INPUT EMPTY FULL MPIRUN
mkdir -p "$EMPTY"

again() {
    rm -f "$INPUT"
    tuned --op allgather --dtype float32 --strategies MPI,DIRECT --json \
        --launcher "$WORK/launcher {ranks}" "$@"
}
again --sizes 1K,2K,4K --cache "$FULL/gentables/tune.json"
[ "$(grep -c ^measure "$INPUT")" = 3 ] || fail "not all was measured at first"
again --sizes 1K --cache "$WORK/mine.json"

# One size is in the cache of the verb, two are not; rank 1's has all three, rank 0's none.
again --sizes 1K,2K,4K --cache "$WORK/mine.json"
[ "$(grep -c ^measure "$INPUT")" = 2 ] || fail "measured: $(cat "$INPUT")"
grep -q "count=256 " "$INPUT" && fail "what was there was measured again"
"$GENTABLES" lua "$(dirname "$0")/results.lua" "$WORK/out" >"$WORK/results"
[ "$(wc -l <"$WORK/results")" = 6 ] || fail "not all have times: $(cat "$WORK/results")"
[ -z "$(ls -A "$EMPTY")" ] || fail "a rank wrote a cache: $(ls -A "$EMPTY")"

again --sizes 1K,2K,4K --cache "$WORK/mine.json"
[ ! -e "$INPUT" ] || fail "a cached cell was measured"
