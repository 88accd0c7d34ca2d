#!/bin/sh
# Tables of TensorRT-LLM's header in any layout, NCCL's tuner files and Open MPI's rules become table.csv.
. "$(dirname -- "$0")/lib.sh"
needs python3
read_table=$WORK/table.csv

# The header, as printed, as shipped and on one line: the same cells.
python3 "$SOURCE/tests/readers/make_header.py" "$WORK"
imports "$WORK/printed.cpp" "$read_table"
cmp "$read_table" "$WORK/sm90.csv" || die "another table of sm90"
for layout in shipped joined; do
    imports "$WORK/$layout.h" "$WORK/$layout"
    for arch in sm90 sm100; do
        cmp "$WORK/$layout/$arch/table.csv" "$WORK/$arch.csv" || die "another table of $arch in $layout.h"
    done
done
imports "$WORK/shipped.h" "$read_table" --arch sm100
cmp "$read_table" "$WORK/sm100.csv" || die "--arch does not choose"
sed 's/$/\r/' "$WORK/shipped.h" >"$WORK/crlf.h"
imports "$WORK/crlf.h" "$read_table" --arch sm90
cmp "$read_table" "$WORK/sm90.csv" || die "another table with CRLF"

# Comments above a table that list other axes hold.
cat >"$WORK/other_axes.sed" <<END
1,5s/Hidden:.*/Hidden:[64, 128, 256, 512, 1024, 2048, 4096]/
1,5s/TP:.*/TP:[2, 4, 16]/
1,5s/'RESIDUAL_RMS_NORM', \('[A-Z_0-9]*FP8'\)/\1, 'RESIDUAL_RMS_NORM'/
s/TP=8/TP=16/
/^ /s/=RESIDUAL_RMS_NORM$/=swap/
/^ /s/=RESIDUAL_RMS_NORM_QUANT_FP8/=RESIDUAL_RMS_NORM/
s/=swap/=RESIDUAL_RMS_NORM_QUANT_FP8/
END
sed -f "$WORK/other_axes.sed" "$WORK/printed.cpp" >"$WORK/other_axes.cpp"
imports "$WORK/other_axes.cpp" "$WORK/other_axes.csv"
awk -F, -v OFS=, '{ $7 = $7 * 2; sub("^16$", 8, $2); f = $3
    if (f == "RESIDUAL_RMS_NORM") $3 = f "_QUANT_FP8"; if (f ~ /FP8/) $3 = "RESIDUAL_RMS_NORM" }
    NR > 1 { print }' "$WORK/other_axes.csv" | sort >"$WORK/relabelled"
tail -n +2 "$WORK/sm90.csv" | sort | cmp - "$WORK/relabelled" || die "the axes in comments do not hold"

# Our own header and fragment have the choices of table.csv, if these were measured.
succeeds generate --data-dir "$SOURCE/tests/golden/sm90" --arch sm90 --out "$WORK/ours" --formats trtllm
imports "$WORK/ours/generated_lookup_table.cpp" "$read_table"
lines "$read_table" 1261
has_lines "$read_table" 'sm90,2,NONE,bfloat16,allreduce,unknown,1024,1,ONESHOT,,,,,,,,'

# The complete header of gentables; its TP sizes have axes of their own.
mkdir -p "$WORK/tables/sm90"
cp "$golden"/benchmark.*.csv "$WORK/tables/sm90"
succeeds generate --data-dir "$WORK/tables" --arch all --out "$WORK/tables" --choose corner
succeeds generate --data-dir "$golden" --arch sm90 --out "$WORK/corner" --formats table --choose corner
imports "$WORK/tables/customAllReduceUtils.h" "$read_table"
has_lines "$read_table" 'sm90,2,NONE,bfloat16,allreduce,unknown,2880,16,TWOSHOT,,,,,,,,' \
    'sm90,2,NONE,bfloat16,allreduce,unknown,2880,256,unmeasured,,,,,,,,'
python3 - "$WORK/corner/table.csv" "$read_table" <<END
import csv, sys
def cells(path):
    key = ('world_size', 'fusion', 'hidden_size', 'num_tokens')
    return {tuple(row[name] for name in key): row['strategy'] for row in csv.DictReader(open(path))
            if (row['dtype'], row['op']) == ('bfloat16', 'allreduce')}
golden, found = cells(sys.argv[1]), cells(sys.argv[2])
different = [key for key in found if golden.get(key, 'unmeasured') not in (found[key], 'SYMM_MEM')]
assert not different and len(found) > 20, different
END

# The numbers of an older enum, if an option names its version.
sed 's/\<4\>/1/g; s/\<5\>/2/g; s/\<8\>/0/g; s/TP=1/TP=4/; s/TP=0/TP=8/' "$WORK/shipped.h" >"$WORK/old.h"
imports "$WORK/old.h" "$read_table" --era oneshot1 --arch sm90
sed 's/NCCL_SYMMETRIC/NCCL/' "$WORK/sm90.csv" | cmp - "$read_table" || die "another table of the older era"

# NCCL's tuner: the first rule that matches counts, and a threshold is the size at which another one matches.
cat >"$WORK/tuner.csv" <<END
# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks
broadcast,0,65536,ring,simple,4,-1,-1
allreduce,0,1000,tree,ll,2,1,8
allreduce,501,2000,ring,ll128,4,-1,-1,-1,-1
allreduce,3000,3000,tree,simple,2,-1,8
allreduce,4001,18446744073709551615,nvls,simple,16,-1,8,-1
END
imports "$WORK/tuner.csv" "$read_table" --arch sm90
tail -n +2 "$read_table" >"$WORK/cells"
cat >"$WORK/expected" <<END
sm90,8,NONE,bfloat16,allreduce,unknown,1,1,NCCL_TREE_LL_2CH,,,,,,,,
sm90,8,NONE,bfloat16,allreduce,unknown,501,1,NCCL_RING_LL128_4CH,,,,,,,,
sm90,8,NONE,bfloat16,allreduce,unknown,1001,1,unmeasured,,,,,,,,
sm90,8,NONE,bfloat16,allreduce,unknown,1500,1,NCCL_TREE_SIMPLE_2CH,,,,,,,,
sm90,8,NONE,bfloat16,allreduce,unknown,1501,1,unmeasured,,,,,,,,
sm90,8,NONE,bfloat16,allreduce,unknown,2001,1,NCCL_NVLS_SIMPLE_16CH,,,,,,,,
END
diff "$WORK/expected" "$WORK/cells" || die "other cells"

# Open MPI's rules: classic, version 2 and JSON have the same content; --hidden-size and --tp select other
# cells.
imports "$inputs/ompi_rules.conf" "$read_table"
has_lines "$read_table" 'host,4,NONE,bfloat16,allreduce,unknown,1,1,MPI_RECURSIVE_DOUBLING,,,,,,,,' \
    'host,4,NONE,bfloat16,allreduce,unknown,32768,1,MPI_RING,,,,,,,,' \
    'host,4,NONE,bfloat16,allreduce,unknown,524288,1,MPI_SEGMENTED_RING,,,,,,,,'
one_line 'left out, fan-in, segment size or requests: of a rule: 1'
imports "$inputs/ompi_rules.conf" "$read_table" --tp 6 --hidden-size 128 --dtype float32
has_lines "$read_table" 'host,6,NONE,float32,allreduce,unknown,128,128,MPI_RING,,,,,,,,'
imports "$inputs/ompi_rules.json" "$read_table"
lines "$read_table" 3
mkdir "$WORK/host" # rows that do not name the version of their Open MPI
for tp in 2 4; do
    awk -F, 'NR == 1 || $7 == "NONE"' "$SOURCE/tables/host/benchmark.tp$tp.host.csv" \
        >"$WORK/host/benchmark.tp$tp.host.csv"
done
succeeds generate --data-dir "$WORK/host" --arch host --out "$WORK/rules" --formats ompi,ompi-v2,ompi-json
for rules in ompi_rules.conf ompi_rules_v2.conf ompi_rules.json; do
    imports "$WORK/rules/$rules" "$WORK/$rules.csv" --tp 2,4
done
cmp "$WORK/ompi_rules.conf.csv" "$WORK/ompi_rules_v2.conf.csv" || die "version 2 differs"
cmp "$WORK/ompi_rules.conf.csv" "$WORK/ompi_rules.json.csv" || die "the JSON differs"

# gentables reads and writes each imported table unchanged.
cat >"$WORK/same.lua" <<END
local tables, file = require "core.table", require "core.file"
for _, path in ipairs(arg) do
  local read, arch = assert(tables.read(path))
  assert(read:text(arch) == file.read(path), path)
end
END
succeeds lua "$WORK/same.lua" "$WORK/sm90.csv" "$WORK/ompi_rules.conf.csv" "$read_table"
cells=$(cat "$WORK/sm90.csv" "$WORK/ompi_rules.conf.csv" "$read_table" | grep -vc '^arch,')
counts table 'gentables, byte for byte' "$("$GENTABLES" --version | sed -n '1s/.* //p')" "$cells" "$cells"
sed '0,/^\(sm90,.*\),ONESHOT,/s//\1,TWOSHOT,/' "$WORK/sm90.csv" >"$WORK/wrong.csv"
if cmp -s "$WORK/wrong.csv" "$WORK/sm90.csv"; then die "no choice was changed"; fi
ends_with 1 "$GENTABLES" diff "$WORK/sm90.csv" "$WORK/wrong.csv"
