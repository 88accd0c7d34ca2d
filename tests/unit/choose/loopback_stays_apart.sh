#!/bin/sh
# Rows of ranks that share a GPU never enter a table for smXX, in any file, unless --allow-loopback is given;
# then every artifact mentions it.
. "$SOURCE/tests/lib.sh"

data=$WORK/data
# measured PLACEMENT STRATEGY TIME FILE...: adds a row with this placement.
measured() {
    placement=$1 strategy=$2 time=$3 file=$4
    if [ ! -e "$file" ]; then
        mkdir -p "$data"
        more="low (us),high (us),samples,min (us),p95 (us),p99 (us),bound (us),mode,accumulate,placement"
        echo "$header,$more" >"$file"
    fi
    times=$time,$time,$time,20,$time,$time,$time,0.1
    echo "2,bfloat16,2048,1,1024,$strategy,NONE,allreduce,$times,eager,fp32,$placement" >>"$file"
}
# chosen: the choice in table.csv for the one cell.
chosen() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "strategy") at = i; next } { print $at }' \
        "$WORK/out/table.csv"
}

# Beside others, although it is faster.
measured dedicated NCCL 9 "$data/benchmark.tp2.sm90.csv"
measured loopback ONESHOT 2 "$data/benchmark.tp2.sm90.csv"
succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/out"
[ "$(chosen)" = NCCL ] || die "a loopback row won: $(chosen)"
grep -q "1 loopback row" "$WORK/out/report.md" || die "no line about the omitted row"
if grep -rl "from loopback rows" "$WORK/out"; then die "a table without loopback rows mentions them"; fi

succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/out" --allow-loopback
[ "$(chosen)" = ONESHOT ] || die "--allow-loopback changes nothing"
for artifact in "$WORK"/out/*; do
    case $artifact in */inductor_profile.json) continue ;; esac # it has times of dedicated NCCL alone
    grep -q "loopback" "$artifact" || die "$artifact does not mention its loopback rows"
done

# Alone in the file: there is no candidate.
rm -r "$data"
measured loopback ONESHOT 2 "$data/benchmark.tp2.sm90.csv"
rejects "or of loopback" generate --data-dir "$data" --arch sm90 --out "$WORK/alone"

# In a file of their own, for another arch.
rm -r "$data"
measured loopback ONESHOT 2 "$data/benchmark.tp2.sm90-loopback.csv"
rejects "has no benchmark.tp\{N\}.sm90.csv" generate --data-dir "$data" --arch sm90 --out "$WORK/own"
succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/own" --allow-loopback
grep -q "from loopback rows" "$WORK/own/generated_lookup_table.cpp" || die "the table lacks it"
succeeds generate --data-dir "$data" --arch sm90-loopback --out "$WORK/own"

# A table of loopback rows is no incumbent of a table for smXX.
measured dedicated NCCL 9 "$data/benchmark.tp2.sm90.csv"
cp "$WORK/own/table.csv" "$WORK/loopback.csv"
against="--data-dir $data --arch sm90 --out $WORK/against --against $WORK/loopback.csv"
# shellcheck disable=SC2086
rejects "loopback.csv: is of sm90-loopback, not sm90" generate $against
# shellcheck disable=SC2086
succeeds generate $against --allow-loopback
