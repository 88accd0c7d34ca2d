#!/bin/sh
# Makes folders of tables, with their reports, from the rows that verify.sh measured on a machine with a GPU:
#
#   sh bench/cuda/tables.sh VERIFIED [TABLES]   VERIFIED has rows.tpN.txt, and gpus.tpN.txt of several GPUs;
#                                               TABLES: the folder of the tables, by default tables
#
# TABLES/smNN gets the table of ranks with a GPU each, TABLES/smNN-loopback that of ranks that share one.
# GENTABLES: the program; default build/bin/gentables. If there is no spec.lua, it writes one.
set -eu
verified=${1:?usage: sh tables.sh FOLDER-OF-rows.tpN.txt [TABLES]}
gentables=${GENTABLES:-$(dirname "$0")/../../build/bin/gentables}
tables=${2:-$(dirname "$0")/../../tables}

# make FILE...: the table of these rows; $ending: the end of its arch's name.
make() {
    arch=$(cat "$@" | sed -n 's/^hello .* isa=sm_\([0-9]*\) .*/sm\1/p' | sort -u)$ending
    case $arch in
    sm[0-9]*) ;;
    *)
        echo "tables.sh: $1: no line \"hello\" of a bench for GPUs; give the folder that verify.sh wrote" >&2
        exit 2
        ;;
    esac
    sizes=$(printf '%s\n' "$@" | sed 's/.*\.tp\([0-9]*\)\.txt$/\1/' | sort -n | paste -sd , -)
    spec=$tables/$arch/spec.lua
    mkdir -p "$tables/$arch"
    if [ ! -e "$spec" ]; then
        sed "s/ARCH/$arch/; s/tp = {.*}/tp = { $sizes }/" "$(dirname "$0")/verified_spec.lua" >"$spec"
    fi
    "$gentables" import "$@" --arch "$arch" --out "$tables/$arch"
    "$gentables" generate --data-dir "$tables/$arch" --arch "$arch" --out "$tables/$arch"
}

found=no
for kind in gpus: rows:-loopback; do
    ending=${kind#*:}
    set -- "$verified/${kind%%:*}".tp*.txt
    [ -e "$1" ] || continue
    found=yes
    make "$@"
done
if [ $found = no ]; then
    echo "tables.sh: $verified/rows.tp*.txt: no rows; give the folder that verify.sh wrote" >&2
    exit 2
fi
