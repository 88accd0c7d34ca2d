#!/bin/sh
# New choices join those of a folder, in tuned.json and in Python: those of other cells stay, those of the
# same cells are replaced, and both are reported. Of several splits Python uses the choices of the last
# tuning. Files of another machine or version are rejected before anything is measured.
. "$(dirname "$0")/lib.sh"

into() {
    tuned --dtype float32 --out "$WORK/tuned" "$@"
}
# python STATEMENT...: with `cells` of tuned.json and the module `tuned`.
python() {
    {
        echo 'import json, sys'
        echo 'import gentables_tuned as tuned'
        echo 'cells = json.load(open("tuned.json"))["cells"]'
        printf '%s\n' "$@"
    } >"$WORK/tuned/asks.py"
    (cd "$WORK/tuned" && python3 -B asks.py) || fail "$*: $(cat "$WORK/tuned/gentables_tuned.py")"
}

into --op allgather --sizes 1K,64K --strategies DIRECT
[ ! -s "$WORK/err" ] || fail "a new folder: unexpected message: $(cat "$WORK/err")"
into --op broadcast --sizes 1K --strategies MPI
printed err "tuned.json, gentables_tuned.py: cells measured now: 1 of broadcast, 0 of them in place of older"
printed err "; kept: 2 of allgather$"
python 'assert [c["op"] for c in cells] == ["broadcast", "allgather", "allgather"], cells' \
    'assert tuned.choose("allgather", 1024, 2, "float32") == "DIRECT"' \
    'assert tuned.choose("broadcast", 1024, 2, "float32") == "MPI"'

# A cell that is measured again is new; its neighbour stays.
into --op allgather --sizes 64K --strategies MPI
printed err "now: 1 of allgather, 1 of them in place of older ones; kept: 2 of broadcast, allgather"
python 'assert len(cells) == 3, cells' \
    'assert tuned.choose("allgather", 1024, 2, "float32") == "DIRECT"' \
    'assert tuned.choose("allgather", 65536, 2, "float32") == "MPI"' \
    'assert tuned.choose("broadcast", 1024, 2, "float32") == "MPI"'

# A missing launch is reported for each cell.
into --op reducescatter --sizes 1K --strategies MPI --launches 2
python 'assert sorted(c["launches"] for c in cells) == [1, 1, 1, 2], cells' \
    'assert json.load(open("tuned.json"))["single_launch"]'

into --op alltoallv --splits 3:1 --sizes 1K --strategies DIRECT
into --op alltoallv --splits 0:1 --sizes 1K --strategies MPI
printed err "kept: 5 of alltoallv, reducescatter, allgather, broadcast"
python 'assert sorted(c["splits"] for c in cells if c["op"] == "alltoallv") == ["0:1", "3:1"], cells' \
    'assert tuned.choose("alltoallv", 1024, 2, "float32") == "MPI"' \
    'assert "with splits 0:1, the last ones; tuned.json has others" in open("gentables_tuned.py").read()'

# With an epilogue there are the pair and the sum alone.
into --op allreduce --sizes 4K --fusion RESIDUAL_RMS_NORM --hidden-size 64 --strategies TWOSHOT
into --op allreduce --sizes 64K --strategies MPI
python 'pair = tuned.choose_pair("allreduce", "RESIDUAL_RMS_NORM", 4096, 2, "float32")' \
    'assert pair[0] == "TWOSHOT", pair' \
    'assert tuned.choose("allreduce", 4096, 2, "float32") == "TWOSHOT"' \
    'assert tuned.choose("allreduce", 65536, 2, "float32") == "MPI"'

# refused PATTERN: expects exit code 2 before anything is launched, and that all files stay.
refused() {
    cp "$WORK/tuned/tuned.json" "$WORK/before"
    tune --dtype float32 --out "$WORK/tuned" --op reducescatter --sizes 2K --launcher "false {ranks}"
    [ "$status" = 2 ] || fail "$1: ended with $status: $(cat "$WORK/err")"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: not one line: $(cat "$WORK/err")"
    printed err "$1"
    cmp -s "$WORK/tuned/tuned.json" "$WORK/before" || fail "$1: tuned.json has changed"
}
cp "$WORK/tuned/tuned.json" "$WORK/kept.json"
rm "$WORK"/tuned/benchmark.*
sed 's/"cpu": *"[^"]*"/"cpu": "Another 9000"/' "$WORK/kept.json" >"$WORK/tuned/tuned.json"
refused "tuned.json: is of Another 9000.*another --out is required"
sed 's/"version": 2/"version": 1/' "$WORK/kept.json" >"$WORK/tuned/tuned.json"
refused "tuned.json: is not of this version of gentables, or damaged; remove it, or use another --out"
# Names and times of candidates become Python code.
for wrong in 'first["strategy"] = "A\": 1.0}, print(7), {\""' 'first["strategy"] = None' \
    'first["time_us"] = "1"' 'first["time_us"] = 0' 'first["epilogue"] = "other"' 'candidates[0] = 7' \
    'cell["candidates"] = {"first": first}' 'fused.pop("epilogue")' 'fused["epilogue"] = "alone"'; do
    python3 - "$WORK/kept.json" "$WORK/tuned/tuned.json" "$wrong" <<'END'
import json, sys
whole = json.load(open(sys.argv[1]))
cell = whole["cells"][-1]
fused = next(c for c in whole["cells"] if "fusion" in c)
candidates = cell["candidates"]
first = candidates[0]
exec(sys.argv[3])
json.dump(whole, open(sys.argv[2], "w"))
END
    refused "tuned.json: is not of this version of gentables, or damaged"
done
echo '{' >"$WORK/tuned/tuned.json"
refused "tuned.json: is not of this version of gentables"

# If the hooks cannot be read, no file is written.
cp "$WORK/kept.json" "$WORK/tuned/tuned.json"
cp "$WORK/tuned/gentables_tuned.py" "$WORK/kept.py"
mkdir "$WORK/home"
cp -R "$SOURCE/generator" "$SOURCE/templates" "$WORK/home"
rm "$WORK/home/templates/tune/gentables_torch.py"
GENTABLES_HOME=$WORK/home
export GENTABLES_HOME
tune --dtype float32 --out "$WORK/tuned" --op reducescatter --sizes 2K --strategies MPI
[ "$status" = 2 ] || fail "without hooks it ended with $status: $(cat "$WORK/err")"
printed err "gentables_torch.py"
cmp "$WORK/tuned/tuned.json" "$WORK/kept.json" || fail "tuned.json is written without its Python"
cmp "$WORK/tuned/gentables_tuned.py" "$WORK/kept.py" || fail "gentables_tuned.py is written without its hooks"
