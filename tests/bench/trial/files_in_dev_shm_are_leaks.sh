#!/bin/sh
# Files that a plug-in leaves in /dev/shm are a leak, and files of other programs are not counted as one. The
# owner of an unmapped file is unknown, so this test mounts a folder of its own there, which some machines do
# not permit.
if [ $# = 0 ]; then
    for may in "" --map-root-user; do
        ! unshare --mount $may mount -t tmpfs tmpfs /dev/shm 2>/dev/null ||
            exec unshare --mount $may sh "$0" own
    done
else
    mount -t tmpfs tmpfs /dev/shm
fi
. "$(dirname "$0")/../../unit/tune/lib.sh"

# leaks FAULT: expects that both candidates of the plug-in are out, for one leak, with one line each.
leaks() {
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so" \
        --strategies MPI,GOOD,FAULTY --timeout $timeout --fresh --json
    printed err "FAULTY: its plug-in leaks files in /dev/shm"
    [ "$(wc -l <"$WORK/err")" -le 2 ] || fail "$1: more than two lines: $(cat "$WORK/err")"
    printed out '"strategy": "MPI"'
    rm -f "/dev/shm/$BAD_SHM"-*
}

BAD_SHM=bad-plugin-$$ # a name of its own for each run of these tests
export BAD_SHM
trap 'rm -f "$WORK/company"; wait; rm -f "/dev/shm/company-$$-"* "/dev/shm/$BAD_SHM"-*' EXIT
leaks leak_shm
# Other programs make files there at the same time. A file that the plug-in has mapped is the plug-in's; a
# plug-in that leaves none is not blamed for files of others.
in_company() {
    number=0
    while [ -e "$WORK/company" ] && kill -0 $$ 2>/dev/null; do
        rm -f "/dev/shm/company-$$-$((number - 100))"
        number=$((number + 1))
        touch "/dev/shm/company-$$-$number"
    done
}
: >"$WORK/company"
in_company &
leaks leak_shm_mapped
tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_nothing.so" --fresh --json \
    --strategies MPI,GOOD
[ ! -s "$WORK/err" ] || fail "in company: $(cat "$WORK/err")"
printed out '"strategy": "GOOD"'
rm -f "$WORK/company"
