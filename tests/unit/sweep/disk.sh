#!/bin/sh
# A full disk and a read-only folder: one clear line, exit code 1, nothing lost, nothing half-written, and the
# next sweep resumes. Needs to mount; without that right it is skipped.
#
#   disk.sh GENTABLES STAND_IN
. "$SOURCE/tests/lib.sh"
if [ "${3:-}" != inside ]; then
    if ! unshare --mount --map-root-user true 2>/dev/null && ! unshare --mount true 2>/dev/null; then
        skip "this test needs to mount, which is not permitted here"
    fi
    if [ "$(id -u)" = 0 ]; then exec unshare --mount sh "$0" "$1" "$2" inside; fi
    exec unshare --mount --map-root-user sh "$0" "$1" "$2" inside
fi

gentables=$1
stand_in=$2
folder=$(mktemp -d)
trap 'umount "$folder" 2>/dev/null || :; rmdir "$folder"' EXIT

mount -t tmpfs -o size=256k tmpfs "$folder" || skip "no tmpfs can be mounted here"

cat >"$folder/spec.lua" <<'SPEC'
return { arch = "host", tp = { 2 }, fusions = { "NONE", "RESIDUAL_RMS_NORM" },
  hidden_sizes = { 64, 128, 256 }, num_tokens = { 1, 4, 16, 64, 256 },
  strategies = { "MPI", "ONESHOT", "TWOSHOT", "MPI_SM" } }
SPEC

sweep() {
    "$gentables" sweep --out "$folder" --bench "$stand_in" --launcher 'env RANKS={ranks}' "$@"
}

# Sweeps and expects exit code 1 and one line on stderr that holds $1.
expect_failure() {
    wanted=$1
    shift
    code=0
    message=$(sweep "$@" 2>&1 >/dev/null) || code=$?
    [ "$code" = 1 ] || fail "exit code $code in place of 1: $message"
    [ "$(printf '%s\n' "$message" | wc -l)" = 1 ] || fail "more than one line: $message"
    case $message in
    gentables:*"$wanted"*) ;;
    *) fail "$message does not hold: $wanted" ;;
    esac
}

rows_of() { cat "$folder/benchmark.tp2.host.csv" "$folder/benchmark.tp2.host.json"; }

unchanged() {
    [ "$(rows_of)" = "$before" ] || fail "$1 changed the rows"
    [ -z "$(find "$folder" -name '*.tmp')" ] || fail "$1 left $(find "$folder" -name '*.tmp')"
}

sweep >/dev/null
before=$(rows_of)

# Leaves $1 bytes free.
fill() {
    rm -f "$folder/ballast"
    free=$(df -k --output=avail "$folder" | tail -1)
    head -c $((free * 1024 - $1)) /dev/zero >"$folder/ballast"
}

# until_says TEXT OPTION...: sweeps with more and more space until this message; the journal fails first, and
# then the files.
until_says() {
    wanted_last=$1
    shift
    room=0
    message=
    until [ "${message#*"$wanted_last"}" != "$message" ]; do
        rm -f "$folder"/*.part
        fill $room
        expect_failure 'No space left on device' "$@"
        unchanged "a disk with $room bytes left"
        room=$((room + 2048))
    done
}

# Rows of another bench: they must not lie beside the provenance of the earlier ones.
export STAND_IN_HASH=other
until_says 'benchmark.tp2.host.json: cannot be written'
unset STAND_IN_HASH

until_says 'keeps the results' --fresh

# The content of the journal survives that.
rm "$folder/ballast"
output=$(sweep)
case $output in
*"cells to measure"*) fail "the journal was lost: $output" ;;
*"wrote $folder/benchmark.tp2.host.csv"*) ;;
*) fail "not written: $output" ;;
esac

before=$(rows_of)
mount -o remount,ro "$folder"
expect_failure 'Read-only file system' --fresh
unchanged "a read-only folder"
sweep | grep -q 'up to date' || fail "a sweep with nothing to do needs no writing"
