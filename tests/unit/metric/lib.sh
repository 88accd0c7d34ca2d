# Shared by the shell tests of the metrics. Sourced; GENTABLES (the program), SOURCE (the sources) and WORK (a
# folder of this test's own) come from CMakeLists.txt. die, ends_with and one_line are those of the
# generator's tests.
# shellcheck shell=sh
. "$SOURCE/tests/lib.sh"

# skip_without_data FOLDER: ends the test if the real inputs are missing; else `data` is that folder.
skip_without_data() {
    data=${GENTABLES_DATA:-}/$1
    [ -n "${GENTABLES_DATA:-}" ] || skip "GENTABLES_DATA is not the folder of the real inputs"
    [ -d "$data" ] || skip "GENTABLES_DATA has no folder $1"
}

# refused DOCUMENTED_LINE PATTERN: expects two lines on stderr, for an input that other tools reject as well.
refused() {
    [ "$(wc -l <"$stderr")" = 2 ] || die "not two lines on stderr"
    [ "$(sed -n 1p "$stderr")" = "$1" ] || die "first line is not: $1"
    sed -n 2p "$stderr" | grep -Eq "^gentables: .*$2" || die "no line of gentables with: $2"
}

# has_sqlite: whether the program that makes databases and the module that reads them are both installed.
has_sqlite() {
    echo 'os.exit((pcall(require, "core.sqlite")))' >"$WORK/has_sqlite.lua"
    command -v sqlite3 >/dev/null && "$GENTABLES" lua "$WORK/has_sqlite.lua"
}

# skip_without_traces: ends the test if this program reads no profiler files (zlib, SQLite), or python3, which
# makes and checks them, is missing.
skip_without_traces() {
    echo 'os.exit((pcall(require, "core.activity")))' >"$WORK/has_activity.lua"
    needs python3
    "$GENTABLES" lua "$WORK/has_activity.lua" || skip "no zlib"
    has_sqlite || skip "no SQLite"
}
