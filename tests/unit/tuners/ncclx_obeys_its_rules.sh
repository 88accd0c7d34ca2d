#!/bin/sh
# ncclx_tuner.csv and .json: a program that follows NCCLX's rules returns the best algorithm at each measured
# size, number of nodes and ranks on each, by bytes for each rank.
. "$(dirname -- "$0")/lib.sh"
measured sm90
csv=$WORK/out/ncclx_tuner.csv
succeeds generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/out" --formats ncclx,ncclx-json
compiles ncclx_rules
answers() { # BYTES NODES RANKS ANSWER
    returns "$csv" "$1 $2 $3" "$4"
}
returns_all "$csv"
answers 0 1 8 'tree ll 2'
answers 9223372036854775807 1 2 'ring simple 16'
answers 1024 1 4 default
answers 1024 2 2 default
answers 1024 4 8 default

# Borders by bytes for each rank: the first size of a segment that is a multiple of the ranks has its choice.
"$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/out" --formats nccl >"$stdout"
border=$(awk -F, '$7 == 1 && $8 == 8 && $4 == "ring" { print $2; exit }' "$WORK/out/nccl_tuner.csv")
answers $(((border + 7) / 8 * 8)) 1 8 'ring ll128 8'
answers $(((border - 1) / 8 * 8 - 1)) 1 8 'tree ll 2'

# JSON has the same rules.
needs python3
python3 -c 'import json, sys
for rule in json.load(open(sys.argv[1]))["rules"]:
    at, of = rule["filter"], rule["config"]
    print(at["collective"], at["bytesPerRank"], of["algorithm"], of["protocol"], of["channels"], at["nNodes"],
          at["nLocalRanks"], sep=",")' "$WORK/out/ncclx_tuner.json" >"$WORK/of_json"
grep -v '^#' "$csv" | cmp - "$WORK/of_json" || die "JSON has other rules"

# A wrong choice, and a faulty line, are noticed.
sed '0,/tree,ll,2/s//ring,ll,2/' "$csv" >"$WORK/wrong.csv"
[ "$(echo 1024 1 2 | "$WORK/reader" "$WORK/wrong.csv")" != 'tree ll 2' ] || die "not noticed"
sed '0,/tree,ll,2/s//tree,l,2/' "$csv" >"$WORK/wrong.csv"
if echo 1024 1 2 | "$WORK/reader" "$WORK/wrong.csv"; then die "a faulty line was accepted"; fi
is_checked sm90 ncclx "$csv"
counts ncclx 'rules of NCCLX' '59426ba4, v2_29 and v2_30' $asked $asked
compared=$(wc -l <"$WORK/of_json")
counts ncclx-json 'the rules of ncclx_tuner.csv, as JSON' '59426ba4' "$compared" "$compared"
is_checked sm90 ncclx-json "$WORK/out/ncclx_tuner.json"
