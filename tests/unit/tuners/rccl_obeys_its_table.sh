#!/bin/sh
# rccl_tuner_gfx942.csv: a program that follows RCCL's rules returns the best algorithm at each measured size
# and number of nodes, and AMD's own rows for all other calls.
. "$(dirname -- "$0")/lib.sh"
measured gfx942
made=$WORK/out/rccl_tuner_gfx942.csv
generates() { succeeds generate --data-dir "$WORK/data" --arch gfx942 --out "$WORK/out" "$@"; }

# A file replaces AMD's table, so it is not made without AMD's rows.
rejects 'no .*/rccl_defaults.gfx942.csv: a file replaces .*; copy share/rccl/tuner/rccl_tuner_gfx942.csv' \
    generate --data-dir "$WORK/data" --arch gfx942 --out "$WORK/out" --formats rccl
generates
[ ! -e "$made" ] || die "a file without AMD's rows"
printf '# AMD\r\n  allreduce,0,4096,ring,ll,4,-1,-1\r\nbroadcast, 0,1024,tree,simple,-1,1,8,-1,-1\r\n' \
    >"$WORK/data/rccl_defaults.gfx942.csv"
generates --formats rccl
compiles rccl_rules
returns_all "$made" allreduce
returns "$made" 'allreduce 0 1 8' 'tree ll 2'
returns "$made" 'allreduce 18446744073709551615 1 8' 'ring simple 16'
returns "$made" 'allreduce 1024 1 4' 'ring ll 4' # AMD's
returns "$made" 'allreduce 1024 3 2' 'ring ll 4'
returns "$made" 'broadcast 1024 1 8' 'tree simple -1'
returns "$made" 'allgather 1024 1 8' default
[ "$(awk 'length >= 255' "$made")" = "" ] || die "a line is too long"

# A wrong choice, and a line that RCCL skips, are noticed.
sed '0,/tree,ll,2/s//tree,simple,2/' "$made" >"$WORK/wrong.csv"
[ "$(echo 'allreduce 1024 1 2' | "$WORK/reader" "$WORK/wrong.csv")" != 'tree ll 2' ] || die "not noticed"
sed '0,/tree,ll,2/s//tree,lll,2/' "$made" >"$WORK/wrong.csv"
code=0
echo 'allreduce 1024 1 2' | "$WORK/reader" "$WORK/wrong.csv" >"$stdout" || code=$?
[ "$code" = 1 ] || die "no line was skipped"
is_checked gfx942 rccl "$made"
counts rccl 'rules of RCCL' '22af4d53 (2026-03)' $asked $asked

# AMD's rows are read strictly.
given() { # PATTERN TEXT
    printf '%b' "$2" >"$WORK/data/rccl_defaults.gfx942.csv"
    rejects "rccl_defaults.gfx942.csv:$1" \
        generate --data-dir "$WORK/data" --arch gfx942 --out "$WORK/out" --formats rccl
}
given '1: unknown algorithm rings' 'allreduce,0,1,rings,ll,4,-1,-1\n'
given '2: 7 fields; 8 to 10' '# AMD\nallreduce,0,1,ring,ll,4,-1\n'
given '1: "x" is no whole number' 'allreduce,0,x,ring,ll,4,-1,-1\n'
given '1: unknown protocol LL' 'allreduce,0,1,ring,LL,4,-1,-1\n'
given '1: unknown collective all_reduce' 'all_reduce,0,1,ring,ll,4,-1,-1\n'
given ' cut off: its last line has no end' 'allreduce,0,1,ring,ll,4,-1,-1'
: >"$WORK/data/rccl_defaults.gfx942.csv" # AMD has none
generates
returns "$made" 'allreduce 1024 1 4' default

# An arch of AMD has no files for NVIDIA's libraries.
[ ! -e "$WORK/out/nccl_tuner.csv" ] || die "a file for NCCL"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch gfx942 --out "$WORK/out" --formats ncclx
has 'names no format of gfx942' "$stderr"
