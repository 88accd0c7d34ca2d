#!/bin/sh
# gentables history: runs are added once, whole, by several processes; a page and Markdown show what changed,
# in the same bytes each time; files that are no history end in one line.
# Needs: sqlite
. "$SOURCE/tests/lib.sh"

db=$WORK/history.db
history() { "$GENTABLES" history "$@" --database "$db"; }
# launches FILE FACTOR NUMBER: rows of three strategies in 12 cells; the times vary with NUMBER, and those of
# MPI have this factor.
launches() {
    mkdir -p "$(dirname "$1")"
    awk -v header="$header" -v factor="$2" -v number="$3" 'BEGIN {
        print header ",launches (us)"
        srand(number)
        for (i = 0; i < 12; i++) for (s = 0; s < 3; s++) {
            by = s == 0 ? factor : 1
            a = 2 ^ i * by * (1 + 0.01 * rand()); b = 2 ^ i * by * (1 + 0.01 * rand())
            printf "2,bfloat16,%d,%d,1024,%s,NONE,allreduce,%.5f,%.5f;%.5f\n", 2048 * 2 ^ i, 2 ^ i,
                s == 0 ? "MPI" : s == 1 ? "ONESHOT" : "TWOSHOT", (a + b) / 2, a, b
        }
    }' >"$1"
}
runs() { "$GENTABLES" history report --database "$db" | sed -n 's/.*: \([0-9]*\) runs*, .*/\1/p'; }
file=benchmark.tp2.host.csv

# ---- adding -----------------------------------------------------------------------------------
for run in 01 02 03 04 05 06 07 08 09 10 11 12; do
    launches "$WORK/$run/$file" 1 "$run"
    history add "$WORK/$run" --date "2026-01-$run" >/dev/null
done
history add "$WORK/01/$file" --date 2026-01-01 >"$stdout"
has "^unchanged $WORK/01/$file" "$stdout"
[ "$(runs)" = 12 ] || die "not 12 runs"

# A sweep that was continued has more launches of the same rows, and replaces them.
sed '2,$s/$/;9.5/' "$WORK/12/$file" >"$WORK/more.csv"
mkdir "$WORK/more" && mv "$WORK/more.csv" "$WORK/more/$file"
history add "$WORK/more" --date 2026-01-13 >"$stdout"
has "^continued $WORK/more/$file" "$stdout"
history add "$WORK/12" --date 2026-01-12 >"$stdout"
has "^added " "$stdout"
[ "$(runs)" = 13 ] || die "not 13 runs"

# A database that this user may not make, or not write, has that reason.
mkdir "$WORK/closed"
cp "$db" "$WORK/closed/old.db"
chmod 555 "$WORK/closed" && chmod 444 "$WORK/closed/old.db"
if unprivileged test -r "$WORK/01/$file" && unprivileged test -x "$GENTABLES"; then
    for name in new.db old.db; do
        ends_in_one_line 2 "$name: .*: Permission denied" unprivileged "$GENTABLES" history add "$WORK/01" \
            --date 2026-01-01 --database "$WORK/closed/$name"
    done
fi
chmod 755 "$WORK/closed"

# A process that is killed while it adds leaves the earlier runs.
cat >"$WORK/killed.lua" <<'END'
local file = require "core.file"
local store = require("history.history_store").open(arg[1], true)
local levels = require "history.launch_levels"
local of, records = levels.of, require("core.rows").records(arg[2])
levels.of = function(...)
  store.database:query("PRAGMA cache_spill = 1", function() end)
  store.database:query("DELETE FROM times", function() end)
  assert(file.exists(arg[1] .. "-journal"))
  io.stdout:write(io.open("/proc/self/stat"):read("n"), "\n")
  io.stdout:flush()
  os.execute("kill -9 " .. io.open("/proc/self/stat"):read("n"))
  return of(...)
end
store:add { arch = "host", world_size = 2, date = "x", hash = "x", records = records, provenance = {} }
END
"$GENTABLES" lua "$WORK/killed.lua" "$db" "$WORK/01/$file" >"$stdout" 2>"$stderr" || true
[ "$(runs)" = 13 ] || die "a killed process lost runs"

# Several processes at once.
for run in 14 15 16 17 18; do
    launches "$WORK/$run/$file" 1.07 "$run"
    history add "$WORK/$run" --date "2026-01-$run" >"$WORK/$run.out" 2>&1 &
done
wait
[ "$(runs)" = 18 ] || die "not 18 runs: $(cat "$WORK"/1?.out)"

# A sweep adds its rows. If it cannot, it succeeds and prints the command that does; without new rows nothing
# is added.
mkdir "$WORK/swept"
cat >"$WORK/swept/spec.lua" <<'END'
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 64 }, num_tokens = { 1, 4 },
  strategies = { "MPI", "ONESHOT" }, limits = { launches = 1 } }
END
sweep() {
    "$GENTABLES" sweep --out "$WORK/swept" --bench "$STAND_IN" --launcher 'env RANKS={ranks}' --history "$@"
}
sweep "$WORK/swept.db" >"$stdout" 2>"$stderr"
"$GENTABLES" history report --database "$WORK/swept.db" >"$stdout"
has '^host, TP 2: 1 run, ' "$stdout"
sweep "$WORK/no/folder.db" >"$stdout" 2>"$stderr"
[ ! -s "$stderr" ] || die "rows that are not new were added"
sweep "$WORK/no/folder.db" --fresh >"$stdout" 2>"$stderr"
one_line "^gentables: warning: .*; the history lacks .* history add $WORK/swept/$file --database"
rejects 'transport takes no --history' sweep --out "$WORK/swept" --bench "$STAND_IN" --transport \
    --history "$WORK/swept.db"

# ---- reports ----------------------------------------------------------------------------------
for name in a b; do
    history report --out "$WORK/$name.html" --markdown "$WORK/$name.md" >"$stdout"
done
cmp "$WORK/a.html" "$WORK/b.html"
cmp "$WORK/a.md" "$WORK/b.md"
has '! MPI: [67]\.[0-9] % slower, runs: since 14 \(same machine and versions\)' "$stdout"
has '^\| \*\*\+[67]\.[0-9] %\*\* \| MPI \| since 14 \| 2026-01-14 \|' "$WORK/a.md"
has '<svg class="levels"' "$WORK/a.html"
has '<p>host, TP 2: [0-9]+ runs, [0-9]+ changes?; the latest: MPI: .* slower, runs: since 14[.]</p>' \
    "$WORK/a.html"
ends_with 1 "$GENTABLES" history report --database "$db" --fail-within 5
succeeds history report --database "$db" --fail-within 4

# A name is text in Markdown, and --date is only for rows without provenance.
mkdir "$WORK/names"
cp "$WORK/01/$file" "$WORK/names/benchmark.tp2.<b>[x].csv"
"$GENTABLES" history add "$WORK/names" --date 2026-01-01 --database "$WORK/names.db" >/dev/null
"$GENTABLES" history add "$SOURCE/tables/host" --date 2026-01-01 --database "$WORK/names.db" >/dev/null
cat >"$WORK/dates.lua" <<'END'
local database = assert(require("core.sqlite").open(arg[1]))
database:query("SELECT count(*) FROM runs WHERE date = '2026-01-01'", function(count) print(count) end)
END
[ "$("$GENTABLES" lua "$WORK/dates.lua" "$WORK/names.db")" = 1 ] || die "--date replaces recorded dates"
"$GENTABLES" history report --database "$WORK/names.db" --markdown "$WORK/names.md" >"$stdout"
has '^### History of &lt;b&gt;\\\[x\\\], TP 2' "$WORK/names.md"

# ---- several nodes ----------------------------------------------------------------------------
# Rows of several nodes are a history of their own. A database without the column of nodes gets it with the
# first run that is added; reports read it as it is.
mkdir "$WORK/nodes"
awk -v OFS=, '{ print $0, NR == 1 ? "nodes,ranks_per_node" : "2,1" }' "$WORK/01/$file" \
    >"$WORK/nodes/benchmark.tp2.nodes2.host.csv"
cp "$WORK/names.db" "$WORK/nodes.db"
cat >"$WORK/sql.lua" <<'END'
local database = assert(require("core.sqlite").create(arg[1]))
for i = 2, #arg do assert(database:query(arg[i], function() end)) end
END
"$GENTABLES" lua "$WORK/sql.lua" "$WORK/nodes.db" 'ALTER TABLE runs DROP COLUMN nodes' \
    'PRAGMA user_version = 1'
"$GENTABLES" history report --database "$WORK/nodes.db" --markdown "$WORK/before.md" >"$stdout"
"$GENTABLES" history add "$WORK/nodes" --date 2026-01-02 --database "$WORK/nodes.db" >"$stdout"
"$GENTABLES" history report --database "$WORK/nodes.db" --markdown "$WORK/nodes.md" >"$stdout"
has '^### History of host, TP 2 on 2 nodes' "$WORK/nodes.md"
grep '^### ' "$WORK/before.md" >"$WORK/before"
grep '^### ' "$WORK/nodes.md" | grep -v nodes | cmp - "$WORK/before" || die "other histories of one node"

# ---- files that are no history ----------------------------------------------------------------
rejects 'none.db: has no history' history report --database "$WORK/none.db"
: >"$WORK/empty.db"
rejects 'empty.db: has no history' history report --database "$WORK/empty.db"
rejects "$file: (file is not a database|is a database of)" history report --database "$WORK/01/$file"
"$GENTABLES" lua "$WORK/sql.lua" "$WORK/other.db" 'CREATE TABLE t (x)'
rejects 'other.db: is a database of another program' \
    history add "$WORK/01" --date 2026-01-01 --database "$WORK/other.db"
cp "$db" "$WORK/later.db"
"$GENTABLES" lua "$WORK/sql.lua" "$WORK/later.db" 'PRAGMA user_version = 99'
rejects 'later.db: is a history of a later version of gentables \(schema 99; this version reads 2\)' \
    history report --database "$WORK/later.db"
rejects 'the date of the sweep is unknown; give --date' history add "$WORK/01" --database "$db"
for date in yesterday 1 2026-1-31 2026-02-29 2026-13-01 31.01.2026 2026-01-31T24:00 2026-01-31T12:60Z \
    2026-01-31T12:00:99Z 2026-01-31T12:00:00+01:00 '2026-01-31 ' ''; do
    rejects 'is not a date in UTC, such as' history add "$WORK/01" --date "$date" --database "$db"
done
for date in 2024-02-29 2026-01-31T12:00 2026-01-31T12:00Z 2026-01-31T12:00:00 2026-01-31T23:59:59Z; do
    "$GENTABLES" history add "$WORK/01" --date "$date" --database "$WORK/dates.db" >/dev/null
done
mkdir "$WORK/nothing"
rejects 'nothing: has no benchmark' history add "$WORK/nothing" --database "$db"
rejects 'unable to open database file' \
    history add "$WORK/01" --date 2026-01-01 --database "$WORK/no/folder.db"

# Without SQLite in the build.
mkdir -p "$WORK/without/bin" "$WORK/without/share"
cp "$GENTABLES" "$WORK/without/bin/gentables"
ln -s "$SOURCE" "$WORK/without/share/gentables"
mkdir -p "$WORK/without/lib/gentables/core"
cp "$(dirname "$GENTABLES")/../lib/gentables/core/json.so" "$WORK/without/lib/gentables/core"
for verb in "history report --database" "sweep --out $WORK/swept --history"; do
    # shellcheck disable=SC2086
    ends_with 2 "$WORK/without/bin/gentables" $verb "$db"
    one_line 'a history needs SQLite, and this gentables was built without it'
done
