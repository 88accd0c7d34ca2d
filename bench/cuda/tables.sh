#!/bin/sh
# Makes a folder of tables, with its report, from the rows that verify.sh measured on a machine with a GPU:
#
#   sh bench/cuda/tables.sh VERIFIED [TABLES]   VERIFIED has rows.tpN.txt; TABLES: tables/smNN-loopback
#
# GENTABLES: the program; default build/bin/gentables. If there is no spec.lua, it writes one.
set -eu
verified=${1:?usage: sh tables.sh FOLDER-OF-rows.tpN.txt [TABLES]}
gentables=${GENTABLES:-$(dirname "$0")/../../build/bin/gentables}
arch=$(cat "$verified"/rows.tp*.txt | sed -n 's/^hello .* isa=sm_\([0-9]*\) .*/sm\1-loopback/p' | sort -u)
case $arch in
sm*-loopback) ;;
*)
    echo "tables.sh: $verified/rows.tp*.txt: no rows of one GPU; give the folder that verify.sh wrote" \
        >&2
    exit 2
    ;;
esac
tables=${2:-$(dirname "$0")/../../tables/$arch}
mkdir -p "$tables"
if [ ! -e "$tables/spec.lua" ]; then
    sed "s/ARCH/$arch/" "$(dirname "$0")/verified_spec.lua" >"$tables/spec.lua"
fi
"$gentables" import "$verified"/rows.tp*.txt --arch "$arch" --out "$tables"
"$gentables" generate --data-dir "$tables" --arch "$arch" --out "$tables"
