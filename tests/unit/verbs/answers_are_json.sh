#!/bin/sh
# --json: verbs that answer a question print one JSON document on stdout, and nothing else.
. "$SOURCE/tests/lib.sh"
cat >"$WORK/value.lua" <<'END'
-- value.lua FILE EXPRESSION: the value of a Lua expression over the document `d`.
local d = assert(require("codec.json").decode(assert(require("core.file").read(arg[1]))))
print(assert(load("local d = ... return " .. arg[2]))(d))
END
# answers CODE EXPRESSION VALUE VERB ARGUMENT...
answers() {
    wanted=$1 expression=$2 value=$3
    shift 3
    ends_with "$wanted" "$GENTABLES" "$@" --json
    given=$("$GENTABLES" lua "$WORK/value.lua" "$stdout" "$expression") || die "no JSON: $*"
    [ "$given" = "$value" ] || die "$expression is $given, not $value: $*"
}
cd "$WORK"
cp -r "$golden" rows
answers 0 '#d.differing' 0 check --data-dir rows --arch sm90
rm rows/table.csv
echo edited >>rows/report.md
answers 1 'd.differing[1].state .. d.differing[2].state' differsmissing check --data-dir rows --arch sm90 \
    --formats report,table
answers 1 'd.command:match(" generate.*")' \
    ' generate --data-dir rows --arch sm90 --out rows --formats table' \
    check --data-dir rows --arch sm90 --formats table
answers 0 'd.changed' 0 diff "$golden/table.csv" "$golden/table.csv"
answers 0 '#d > 20 and d[1].unit' ms metric --list
answers 0 'd.gemms[1].m > 0 and #d.flops' 2 workload show -f small
answers 0 'd.host.cores > 0' true detect
succeeds history add "$SOURCE/tables/host" --database history.db
answers 0 'd[1].arch .. d[1].runs' host1 history report --database history.db
answers 0 'd.raw.mean >= 0' true regret --table "$golden/table.csv" --rows "$golden/benchmark.tp2.sm90.csv"
