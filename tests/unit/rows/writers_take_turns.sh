#!/bin/sh
# merge and generate wait for another gentables that writes into the same folder, and read what it wrote. Rows
# that a sweep is measuring are not replaced.
. "$SOURCE/tests/lib.sh"
needs flock

out=$WORK/out rows=$WORK/out/benchmark.tp2.sm90.csv
mkdir "$out"
rows_of() { # STRATEGY...
    echo "$header"
    for strategy; do echo "$row" | sed "s/NCCL/$strategy/"; done
}
hold() {
    exec 9>"$1"
    flock 9
}
# behind COMMAND...: starts it, returns once it waits for the lock.
behind() {
    "$@" >"$stdout" 2>"$stderr" 9>&- &
    waiting=$!
    until find "/proc/$waiting/fd" -lname "$out/.lock" 2>/dev/null | grep -q .; do
        kill -0 "$waiting" 2>/dev/null || die "does not wait: $*"
    done
}
release() {
    rm "$out/.lock"
    exec 9>&-
    wait "$waiting" || die "the waiting command failed"
    [ ! -e "$out/.lock" ] || die "the lock is left"
}

rows_of NCCL >"$rows"
rows_of TWOSHOT >"$WORK/more.csv"
hold "$out/.lock"
behind "$GENTABLES" merge "$rows" "$WORK/more.csv" --arch sm90 --out "$rows"
rows_of NCCL ONESHOT >"$rows"
release
for strategy in NCCL ONESHOT TWOSHOT; do has ",$strategy," "$rows"; done

rm "$out"/*
rows_of NCCL >"$rows"
hold "$out/.lock"
behind "$GENTABLES" generate --data-dir "$out" --arch sm90 --out "$out"
[ ! -e "$out/table.csv" ] || die "written while another gentables writes"
rows_of ONESHOT >"$rows"
release
has ONESHOT "$out/table.csv"

rm "$out"/*
rows_of NCCL >"$rows"
hold "$rows.part"
failed 'benchmark.tp2.sm90.csv: a sweep is measuring these rows; wait for its end' \
    merge "$rows" "$WORK/more.csv" --arch sm90 --out "$rows"
exec 9>&-
rows_of NCCL | cmp - "$rows" || die "rows of a sweep are replaced"

# In a read-only folder, tables that do not change need no lock.
skip_unless_unprivileged_reads "$rows"
"$GENTABLES" generate --data-dir "$out" --arch sm90 --out "$out" >"$stdout"
chmod 555 "$out"
unprivileged "$GENTABLES" generate --data-dir "$out" --arch sm90 --out "$out" >"$stdout" || die "cannot read"
