# Shared by the tests of choices: rows, and tables made of them. Sourced; `columns` is the header of the rows.
# A test has wins WHICH STRATEGIES, which expects these choices of the table.
# shellcheck shell=sh
. "$SOURCE/tests/lib.sh"
data=$WORK/rows

# begin: no rows yet
begin() {
    rm -rf "$data"
    mkdir -p "$data"
    echo "${columns:?}" >"$data/benchmark.tp2.host.csv"
}

# generate OPTION...
generate() { succeeds generate --data-dir "$data" --arch host "$@"; }

# makes WHICH STRATEGIES OPTION...: makes the table with these options, and expects these choices
makes() {
    wanted_cells=$1 wanted_choices=$2
    shift 2
    generate "$@"
    wins "$wanted_cells" "$wanted_choices"
}
