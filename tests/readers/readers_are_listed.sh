#!/bin/sh
# gentables formats lists every format with its reader, and of rows those of their arch: what each leaves out,
# with its cost, and which files the rows do not give.
. "$SOURCE/tests/readers/lib.sh"

succeeds formats
for name in trtllm trtllm-header c thresholds nccl ompi mpich table; do
    grep -q "^$name  *[a-zA-Z_]*[.]" "$stdout" || die "$name is not listed"
done
[ "$(grep -c '^  read by ' "$stdout")" = "$(grep -c '^[a-z]' "$stdout")" ] || die "a format without a reader"
has '^  shown      UCC .* [(]tuners_ucc_obeys_its_sections, formats_real_readers_obey[)]$' "$stdout"
if grep -q '^  leaves out' "$stdout"; then die "without rows nothing is known to be left out"; fi

# SYMM_MEM has no name in TensorRT-LLM, and is the best in a cell; NCCL's algorithms were not measured.
succeeds formats --data-dir "$golden"
part() { sed -n "/^$1 /,/^\$/p" "$stdout"; }
part trtllm | grep -q '^  leaves out in 1 of 12 cells it has no name .*; mean cost over all cells: [1-9]' ||
    die "no cost of strategies without a name"
part nccl | grep -q '^  not made   no row of an algorithm' || die "nccl is said to be made"
if grep -q '^ompi' "$stdout"; then die "rows of GPUs have no rules of Open MPI"; fi

succeeds formats --data-dir "$golden" --json
python3 - "$stdout" <<'END' || die "the JSON has other entries"
import json, sys
entries = {entry["format"]: entry for entry in json.load(open(sys.argv[1]))}
assert "no name" in " ".join(entries["trtllm"]["leaves_out"])
assert "missing" in entries["nccl"] and "leaves_out" not in entries["nccl"]
assert entries["c"]["shown"]["test"] == "header_answers_every_cell"
END

succeeds formats --data-dir "$golden" --arch all
part trtllm-header | grep -q '^trtllm-header .* customAllReduceUtils.h (--arch all)$' ||
    die "no header of all archs"

rejects "--arch sm90: name the folder of its rows" formats --arch sm90
rejects "no benchmark.tp{N}" formats --data-dir "$WORK"

# Only the named ones.
succeeds formats ompi
[ "$(grep -c 'read by' "$stdout")" = 1 ] || die "other formats than the named one"
has '^ompi  ' "$stdout"
rejects 'there is no format "vlm" \(did you mean vllm\?\)' formats vlm
rejects 'vllm: not for host; rows of another arch' formats vllm --data-dir "$SOURCE/tables/host"

# Each proof that the list names counts what it asked, for table.sh, and table.sh reports one that does not.
for proof in $("$GENTABLES" lua "$SOURCE/tests/readers/proofs.lua"); do
    script=$(find "$SOURCE/tests" -name "$proof.sh" -o -name "${proof#*_}.sh")
    [ -n "$script" ] || die "no script of $proof"
    grep -Eq '^ *(counts|rules) ' "$script" || die "$script counts nothing"
done
build=$(dirname -- "$(dirname -- "$GENTABLES")")
ends_with 0 sh "$SOURCE/tests/readers/table.sh" "$build" formats_nccl_tuner_is_read
has "^\| \`nccl\` \| rules of NCCL's example plugin \| [0-9.]+ \| ([0-9]+) \| \1 \| 0 \|\$" "$stdout"
ends_with 1 sh "$SOURCE/tests/readers/table.sh" "$build" formats_bad_input_ends_in_one_line # no counts
