#!/bin/sh
# Open MPI really reads the rules and the parameter file: its calls of a user-defined operation show which
# algorithm ran at each size, and ompi_info under mpirun shows the parameters. Nothing is timed.
. "$SOURCE/tests/readers/lib.sh"
needs mpicc mpirun
mpirun --version >"$stdout" 2>&1 || skip "mpirun does not run"
grep -q 'Open MPI) 4\.' "$stdout" || exit 77 # the classic rules, and names of parameters
root=""
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root

# Rows with which 2 ranks use basic_linear at 256 B and the ring at 64 KiB; and a search.
mkdir -p "$WORK/data"
{
    echo "$header"
    for size in 256 65536; do
        for strategy in MPI MPI_BASIC_LINEAR MPI_RING MPI_RECURSIVE_DOUBLING; do
            case $size$strategy in 256MPI_BASIC_LINEAR | 65536MPI_RING) time=1 ;; *) time=5 ;; esac
            echo "2,float32,$size,1,$((size / 4)),$strategy,NONE,allreduce,$time"
        done
    done
} >"$WORK/data/benchmark.tp2.host.csv"
columns="world_size,library,setting,strategy,size,time (us),low (us),high (us),launches"
{
    echo "$columns"
    for size in 256 65536; do
        echo "2,4.1.4,default,MPI,$size,10,9,11,3"
        for strategy in MPI MPI_BASIC_LINEAR MPI_RING; do
            case $size$strategy in 256MPI_BASIC_LINEAR | 65536MPI_RING) time=1 ;; *) time=5 ;; esac
            setting="btl_vader_eager_limit=12345;btl_vader_single_copy_mechanism=none;UCX_TLS=posix"
            echo "2,4.1.4,$setting,$strategy,$size,$time,1,9,3"
        done
    done
} >"$WORK/data/transport.tp2.host.csv"
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out"
mpicc -O1 "$SOURCE/tests/unit/formats/calls_of_rank.c" -o "$WORK/calls" >"$stdout" 2>"$stderr" ||
    die "no compiler"
cd "$WORK/out"
# mpirun's own files lie apart: other mpirun processes remove the shared folder when they end.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

transport=$("$GENTABLES" lua "$SOURCE/tests/mpirun.lua" transport) # and Open MPI's own decisions

# calls OPTION...: the additions of rank 1 of 2 at 256 B and 64 KiB.
calls() {
    # shellcheck disable=SC2086
    timeout 200 $transport -n 2 "$@" \
        "$WORK/calls" 256 65536 >"$WORK/calls.out" 2>"$stderr" || die "mpirun $*"
    tr '\n' ' ' <"$WORK/calls.out"
}
# By default both sizes use recursive doubling or a ring, and rank 1 adds. With basic_linear only rank 0 adds;
# the ring adds halves.
[ "$(calls | cut -d' ' -f2)" = 1 ] || die "the default was to add on rank 1: $(cat "$WORK/calls.out")"
obeyed="256 0 0 65536 1 8192 "
obey() { # OPTION...: both sizes do; `asked` counts them.
    ran=$(calls "$@")
    [ "$ran" = "$obeyed" ] || die "the rules were not read: $*: $ran"
    asked=$((asked + 2))
}
asked=0
obey --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename ompi_rules.conf
# The parameter file names its own rules, which differ if the search found other algorithms.
asked=0
obey --tune ompi_tp2.conf
# From another folder that file has no rules, without a word; a copy with its path has them.
cd "$WORK"
[ "$(calls --tune out/ompi_tp2.conf)" != "$obeyed" ] || die "rules in another folder were read"
succeeds generate --data-dir data --arch host --out out --install-prefix installed
for folder in "$WORK" / "$WORK/data"; do
    cd "$folder"
    obey --tune "$WORK/installed/ompi_tp2.conf"
done
cd "$WORK/out"
if [ -e ../installed/table.csv ]; then die "a copy of a file that is not for an MPI library"; fi
rejects '[.]: is the folder of the tables' generate --data-dir ../data --arch host --out . --install-prefix .
rejects 'hold no path with " "' generate --data-dir ../data --arch host --out . --install-prefix "$WORK/a b"
rejects 'give no file for an MPI library' generate --data-dir ../data --arch host --out . --formats table \
    --install-prefix "$WORK/installed"
rm ompi_rules.conf
obey --tune ompi_tp2.conf # which has rules of its own
ompi_version=$(mpirun --version | sed -n 's/^mpirun (Open MPI) //p')
counts ompi-parameters-rules 'Open MPI, run: additions of a rank' "$ompi_version" $asked $asked
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/both" --formats ompi-parameters
if [ ! -e "$WORK/both/ompi_tp2_rules.conf" ]; then die "a parameter file without its rules"; fi
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out"
shows() { # PATTERN: as `has` in the last output; `asked` counts them.
    has "$1" "$stdout"
    asked=$((asked + 1))
}
# Variables of the environment reach the ranks.
asked=0
timeout 200 mpirun $root -n 1 --tune ompi_tp2.conf env >"$stdout"
shows '^UCX_TLS=posix$'
timeout 200 mpirun $root -n 1 --tune ompi_tp2.conf ompi_info --param btl vader --level 9 --parsable >"$stdout"
shows '^mca:btl:vader:param:btl_vader_eager_limit:value:12345$'
shows '^mca:btl:vader:param:btl_vader_single_copy_mechanism:value:none$'
counts ompi-parameters 'Open MPI, run' "$ompi_version" $asked $asked
# A search that measured Open MPI 4.1.4 makes no files for newer versions, and a message reports that.
if [ -e ompi_rules_v2.conf ] || [ -e ompi_rules.json ]; then die "files for later versions were written"; fi
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ompi-v2
one_line 'ompi_rules_v2.conf: Open MPI 4.1.8, and 5.0 from 5.0.7 on, read it, .* rows are of Open MPI 4.1.4'
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ompi-json
one_line 'ompi_rules.json: Open MPI 6.0 and later read it, and the rows are of Open MPI 4.1.4'
sed -i 's/^2,4.1.4,/2,5.0.7,/' "$WORK/data/transport.tp2.host.csv"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ompi-json
one_line 'Open MPI 6.0 and later read it, and the rows are of Open MPI 5.0.7'
# Each version gets the rules that it reads as they are meant.
makes() { # VERSION FILE...: these files of rules are made of rows of that version.
    version=$1
    shift
    sed -i "s/^2,[0-9.]*,/2,$version,/" "$WORK/data/transport.tp2.host.csv"
    succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/of_$version"
    made=$(cd "$WORK/of_$version" && echo ompi_rules*)
    [ "$made" = "$*" ] || die "$version: made $made, not $*"
}
makes 4.1.7 ompi_rules.conf
makes 4.1.8 ompi_rules.conf ompi_rules_v2.conf
makes 5.0.6 ompi_rules.conf
makes 5.0.10 ompi_rules.conf ompi_rules_v2.conf
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --install-prefix "$WORK/installed"
[ -e "$WORK/installed/ompi_rules_v2.conf" ] || die "no copy of the rules"
# The folder may have copies for other TP sizes, from other rows, and files of others.
cp "$WORK/installed/ompi_tp2.conf" "$WORK/installed/ompi_tp4.conf"
echo mine >"$WORK/installed/ompi_tp9.conf"
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --install-prefix "$WORK/installed"
[ -e "$WORK/installed/ompi_tp4.conf" ] || die "a copy for another TP size is gone"
if grep -q ompi_tp9 "$stdout" "$stderr"; then die "a file of others counts"; fi
makes 6.0.1 ompi_rules.json
# Copies that the rows no longer give are removed, as the files beside the rows are.
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --install-prefix "$WORK/installed"
has "^removed   $WORK/installed/ompi_rules_v2.conf" "$stdout"
[ ! -e "$WORK/installed/ompi_rules.conf" ] || die "a stale copy is left"
rejects 'ompi_rules.conf: Open MPI before 6.0 reads it .* use ompi_rules.json' \
    generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ompi
# check detects that the times of the search changed, or are missing.
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out"
succeeds check --data-dir "$WORK/data" --arch host --tables "$WORK/out"
sed -i 's/12345/23456/' "$WORK/data/transport.tp2.host.csv"
ends_with 1 "$GENTABLES" check --data-dir "$WORK/data" --arch host --tables "$WORK/out"
has '^-btl_vader_eager_limit = 12345$' "$stdout"
rm "$WORK/data/transport.tp2.host.csv"
ends_with 1 "$GENTABLES" check --data-dir "$WORK/data" --arch host --tables "$WORK/out"
has 'out/ompi_tp2.conf: has no rows here; remove it .no transport.tp' "$stdout"
has 'out/ompi_tp2_rules.conf: has no rows here; remove it .no transport.tp' "$stdout"
# generate removes what it once made of a search, and nothing else.
echo mine >"$WORK/out/ompi_tp9.conf"
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out"
has '^removed   .*out/ompi_tp2.conf .no transport.tp' "$stdout"
has 'out/ompi_tp9.conf: has no rows here; remove it' "$stderr"
[ "$(echo ompi_tp*)" = ompi_tp9.conf ] || die "other files stay: $(echo ompi_tp*)"
rm ompi_tp9.conf
# Version 2 is the same with another head, and JSON is read as such. These rows do not name their library.
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out"
[ "$(head -1 ompi_rules_v2.conf)" = rule-file-version-2 ] || die "version 2 begins with its version"
sed 's/ *#.*//; s/^\([0-9]* [0-9] 0 0\) 0$/\1/' ompi_rules_v2.conf | grep '^[0-9]' >"$WORK/v2"
sed 's/ *#.*//' ompi_rules.conf | grep '^[0-9]' >"$WORK/v1"
cmp -s "$WORK/v1" "$WORK/v2" || die "version 2 differs"
if command -v python3 >"$stdout"; then
    python3 -c 'import json, sys
rules = json.load(open(sys.argv[1]))["collectives"]["allreduce"][0]["rules"]
assert [r["alg"] for r in rules] == ["basic_linear", "ring"], rules
assert rules[0]["msg_size_max"] + 1 == rules[1]["msg_size_min"] and rules[1]["msg_size_max"] == "inf"' \
        ompi_rules.json || die "$(cat ompi_rules.json)"
fi

# Of rows on two nodes coll/han reads which component does an allreduce; other collectives stay with
# coll/tuned.
{
    echo "$header,nodes,ranks_per_node"
    for size in 256 65536; do
        for strategy in MPI MPI_HAN MPI_RING; do
            case $size$strategy in 256MPI_HAN | 65536MPI_RING) time=1 ;; *) time=5 ;; esac
            echo "4,float32,$size,1,$((size / 4)),$strategy,NONE,allreduce,$time,2,2"
        done
    done
} >"$WORK/data/benchmark.tp4.nodes2.host.csv"
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ompi,ompi-han
if [ -e ompi_han.conf ]; then die "a file for coll/han on one node, where it does nothing"; fi
dumps() { # FILE: coll/han prints the rules that it read
    timeout 200 mpirun $root -n 1 --mca coll_han_dump_dynamic_rules true --mca coll_han_verbose 30 \
        --mca coll_base_verbose 30 --mca coll_han_use_dynamic_file_rules true \
        --mca coll_han_dynamic_rules_filename "$1" "$WORK/calls" 256 >"$stdout" 2>&1
}
dumps "$WORK/out/ompi_han.nodes2.conf"
has ' read 10 rules from ' "$stdout"
allreduce='collective 2 .allreduce. topology level 2 .global_communicator. configuration size'
asked=0
shows "$allreduce 1 mes*age size 0 -> collective component [0-9]* .tuned."
shows "$allreduce 4 mes*age size 0 -> collective component [0-9]* .han."
shows "$allreduce 4 mes*age size 4097 -> collective component [0-9]* .tuned."
shows "$allreduce 5 mes*age size 0 -> collective component [0-9]* .tuned."
counts ompi-han 'coll/han: the rules that it prints' "$ompi_version" $asked $asked
has 'collective 7 .bcast. .* size 1 mes*age size 0 -> collective component [0-9]* .tuned.' "$stdout"
grep -q '^0 4 0 0 # ring' ompi_rules.nodes2.conf || die "no rule for the algorithm of coll/tuned"
sed 's/^0 han$/0 tuned/' ompi_han.nodes2.conf >"$WORK/wrong_han.conf"
dumps "$WORK/wrong_han.conf"
has "$allreduce 4 mes*age size 0 -> collective component [0-9]* .tuned." "$stdout" # a wrong choice is noticed
