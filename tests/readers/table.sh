#!/bin/sh
# Prints a table of the files that gentables writes: which reader in which version was asked for how many
# choices, and how many it obeyed. Runs the proofs that generator/formats/list.lua names.
#
#   sh tests/readers/table.sh [BUILD [PROOF...]]      default: build, and all proofs
#
# GENTABLES_READERS lists folders with readers, which real/debians.sh makes. Without it the table has only the
# readers of this machine, and programs that follow the rules of others. Exit code 1 if a proof fails, or if
# it counts nothing.
set -u
cd "$(dirname -- "$0")/../.." || exit 2
build=$(cd "${1:-build}" && pwd) || exit 2
[ $# -eq 0 ] || shift
SOURCE=$PWD GENTABLES=$build/bin/gentables LUA_PATH="$PWD/tests/?.lua;;"
export SOURCE GENTABLES LUA_PATH
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
proofs=${*:-$("$GENTABLES" lua tests/readers/proofs.lua)}

# script NAME: the script of a test; most names begin with the name of their room.
script() { find tests -name "$1.sh" -o -name "${1#*_}.sh" | head -n 1; }

status=0
for proof in $proofs; do
    code=0
    WORK=$work/$proof sh "$(script "$proof")" >"$work/out" 2>&1 </dev/null || code=$?
    grep '^asked ' "$work/out" >>"$work/counts" && counted=1 || counted=0
    if [ "$code" = 77 ]; then
        grep '^skipped: ' "$work/out" | sed "s/^/$proof: /" >&2
    elif [ "$code" != 0 ] || [ "$counted" = 0 ]; then
        { echo "$proof: exit code $code"; tail -n 20 "$work/out"; } >&2
        status=1
    fi
done
echo '| format | read by | version | asked | obeyed | listed as gaps |'
echo '|---|---|---|---|---|---|'
sed -n 's/^asked \([0-9]*\) obeyed \([0-9]*\): \([^ ]*\) | \(.*\) | \(.*\)$/\3|\4|\5|\1|\2/p' "$work/counts" |
    LC_ALL=C sort -u |
    awk -F'|' '{ printf "| `%s` | %s | %s | %d | %d | %d |\n", $1, $2, $3, $4, $5, $4 - $5 }'
exit "$status"
