#!/bin/sh
# An invalid command line, spec or folder ends in one line and exit code 2.
. "$SOURCE/tests/lib.sh"

rejects 'needs --data-dir DIR' generate --arch sm90
rejects '--arch gpu9: no such arch; valid: host, host-NAME, smNN' generate --data-dir "$golden" --arch gpu9
ends_with 2 "$GENTABLES" generate --data-dir "$golden" --arch sm90 --formats c,excel
one_line '--formats: "excel" is not one of trtllm, trtllm-header, c, .*, report'
rejects 'has no option --fast' check --data-dir "$golden" --arch sm90 --fast
ends_with 2 "$GENTABLES" check --data-dir "$golden" --arch sm90 --formats ,
one_line '--formats: "" is not one of trtllm, trtllm-header, c, .*, report'

# A folder as an argument, lists with blanks, and an arch that is that of the rows.
rejects 'is taken as --data-dir, which is given' check "$golden" --data-dir "$golden"
succeeds check "$golden" --formats table c
succeeds generate --formats table "thresholds report" "$golden" --out "$WORK/by_words"
[ "$(find "$WORK/by_words" -type f | wc -l)" = 3 ] || die "not the three files"
succeeds report "$golden" --out "$WORK/by_words"
succeeds formats "$golden"

# A table without measured cells would be one long fallback.
rows "$WORK/other/benchmark.tp2.sm90.csv" '2,float16,2048,1,1024,NCCL,NONE,allreduce,9.5' \
    '2,float32,4096,1,1024,NCCL,NONE,allreduce,9.5'
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/other" --arch sm90
one_line 'has only bfloat16 allreduce eager; the rows are float16 allreduce unknown; float32'

# Rows on no grid.
mkdir "$WORK/scattered"
awk -v header="$header" 'BEGIN {
    print header
    for (i = 1; i <= 5000; i++) printf "2,bfloat16,%d,%d,%d,NCCL,NONE,allreduce,1\n", 2 * i * i, i, i
}' >"$WORK/scattered/benchmark.tp2.sm90.csv"
rejects 'a table needs rows on a grid' generate --data-dir "$WORK/scattered" --arch sm90

# Two machines in one folder.
# provenance CPU HASH: writes that of the rows with this hash.
provenance() {
    cat <<END
{"version": 1, "fingerprint": "f",
 "machine": {"cpu": "$1", "cores": 2, "caches": {}, "mpi": "Open MPI 4.1.4"},
 "bench": {}, "rows": {"hash": "$2"}, "no_time": []}
END
}
hash_of() {
    echo 'print(require("rows.provenance").hash(require("core.file").read(arg[1])))' >"$WORK/hash.lua"
    "$GENTABLES" lua "$WORK/hash.lua" "$1"
}
rows "$WORK/two/benchmark.tp2.sm90.csv" "$row"
rows "$WORK/two/benchmark.tp4.sm90.csv" '4,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5'
provenance one "$(hash_of "$WORK/two/benchmark.tp2.sm90.csv")" >"$WORK/two/benchmark.tp2.sm90.json"
provenance other "$(hash_of "$WORK/two/benchmark.tp4.sm90.csv")" >"$WORK/two/benchmark.tp4.sm90.json"
rejects "is of another machine \(other, 2 cores" generate --data-dir "$WORK/two" --arch sm90
echo '{' >"$WORK/two/benchmark.tp4.sm90.json"
rejects 'benchmark.tp4.sm90.json: is not JSON' generate --data-dir "$WORK/two" --arch sm90

# A spec with an unknown key.
rows "$WORK/spec/benchmark.tp2.sm90.csv" "$row"
cat >"$WORK/spec/spec.lua" <<'END'
return {
  arch = "sm90", tp = { 2 }, hidden_sizes = { 1024 }, num_tokens = { 1 },
  tokens = { 1 } }
END
rejects 'spec.lua:3: unknown key "tokens"' generate --data-dir "$WORK/spec" --arch sm90
printf 'return { ["to%%\\nkens"] = 1 }\n' >"$WORK/spec/spec.lua"
rejects 'spec.lua:1: unknown key "to%[?]kens' generate --data-dir "$WORK/spec" --arch sm90
