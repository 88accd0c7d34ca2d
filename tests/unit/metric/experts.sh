#!/bin/sh
# token_to_expert_assignment of gate logs that this test makes: small ones with results by hand, large ones
# against python3, every layout of JSON, the choice of the folder, several runs.
# Needs: yaml
. "$SOURCE/tests/unit/metric/lib.sh"
. "$SOURCE/tests/pictures.sh"

# run_folder NAME: a run of a mixture-of-experts model.
run_folder() {
    mkdir -p "$WORK/$1"
    printf 'workload:\n  model:\n    phase: inference\n    moe: true\n' >"$WORK/$1/card.yaml"
}

# gate_log PATH LOADS: the log of steps with these loads.
gate_log() {
    mkdir -p "$WORK/$(dirname -- "$1")"
    steps=$(printf '%s' "$2" | tr -d ' 0-9.,]' | sed 's/\[/7,/g; s/,$//')
    printf '{"step": [%s], "num_tokens": [%s], "expert_loads": [%s]}' "$steps" "$steps" "$2" >"$WORK/$1"
}

# reads RUN OPTION...: the metric of a run
reads() {
    run=$1
    shift
    succeeds metric token_to_expert_assignment --trace "$WORK/$run" "$@"
}

# prints KEYS VALUE: expects this value below these keys of the JSON on stdout, as python writes it.
prints() {
    found=$(python3 -I -S -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[int(key) if isinstance(value, list) else key]
print(value)' "$stdout" "$1")
    [ "$found" = "$2" ] || die "$1 is $found, not $2"
}

# Loads 4, 12, 0, 8 in all: shares 1/6, 1/2, 0, 1/3; mean 6, deviations -2, 6, -6, 2: variance 20.
run_folder hand
gate_log hand/gates_logs_a/gate_logs_10.json '[4,4,0,0],[0,0,0,8]'
gate_log hand/gates_logs_a/gate_logs_2.json '[0,4.0,0,0]'
gate_log hand/gates_logs_b/gate_logs_2.json '[0,4,0,0],[0,0,0,0]'
reads hand
prints totals '[4.0, 12.0, 0.0, 8.0]'
prints normalized "$(python3 -c 'print([4 / 24, 12 / 24, 0.0, 8 / 24])')"
prints summary.total_tokens 24.0
prints summary.num_experts 4
prints summary.total_steps 5
prints summary.max_min_ratio 3.0
prints summary.coefficient_of_variation "$(python3 -c 'print(20 ** 0.5 / 6)')"
prints experts_without_load 1
prints files 3
prints folder "$WORK/hand"
# Steps: CV 1 for (4,4,0,0), the root of 3 for a single loaded expert; one step has no load and so no CV.
prints per_step.steps 5
prints per_step.steps_without_load 1
prints per_step.coefficient_of_variation.max "$(python3 -c 'print(3 ** 0.5)')"
prints per_step.coefficient_of_variation.p50 "$(python3 -c 'print(3 ** 0.5)')"
prints per_step.experts_without_load.mean 3.0
prints per_step.experts_without_load.max 4
# Layer 2 comes before layer 10.
prints per_layer.0.layer 2
prints per_layer.0.steps 3
prints per_layer.0.experts_without_load 3
prints per_layer.0.max_min_ratio 1.0
prints per_layer.1.layer 10
prints per_layer.1.max_min_ratio 2.0
prints per_layer.1.step_coefficient_of_variation.max "$(python3 -c 'print(3 ** 0.5)')"
keys=$(sed -n 's/^ *"\([a-z_]*\)":.*/\1/p' "$stdout" | head -11 | tr '\n' ' ')
[ "$keys" = "totals normalized summary entropy normalized_entropy coefficient_of_variation max_min_ratio \
total_tokens num_experts total_steps experts_without_load " ] || die "not the documented order: $keys"
grep -q '^  "totals": \[4.0, 12.0, 0.0, 8.0\],$' "$stdout" || die "not as documented: floats, indent 2"
[ ! -s "$stderr" ] || die "something on stderr"

# All loads equal: perfectly even, and nothing is -0.0 or infinite. One expert is even, too.
run_folder even
gate_log even/gates_logs_0/gate_logs_0.json '[3,3],[0.5,0.5]'
reads even
prints summary.entropy 1.0
prints summary.normalized_entropy 1.0
prints summary.coefficient_of_variation 0.0
prints summary.max_min_ratio 1.0
run_folder single
gate_log single/gates_logs_0/gate_logs_0.json '[3]'
reads single
prints summary.entropy 0.0
prints summary.normalized_entropy 0.0

# The folder of gate logs: DIR, or the first *gates_logs* in it, which a message names. The card may be in a
# folder above.
run_folder several
gate_log several/default_gates_logs/gates_logs_0/gate_logs_0.json '[1,2]'
gate_log several/baseline_gates_logs/gates_logs_0/gate_logs_0.json '[1,3]'
printf 'no folder' >"$WORK/several/a_gates_logs"
reads several
prints totals '[1.0, 3.0]'
prints folder "$WORK/several/baseline_gates_logs"
one_line 'takes baseline_gates_logs of baseline_gates_logs, default_gates_logs'
reads several/default_gates_logs/
prints totals '[1.0, 2.0]'
[ ! -s "$stderr" ] || die "something on stderr"
ends_with 0 sh -c 'cd "$1" && "$2" metric token_to_expert_assignment --trace .' - \
    "$WORK/several/default_gates_logs" "$GENTABLES"
prints totals '[1.0, 2.0]'
ends_with 0 sh -c 'cd "$1" && "$2" metric token_to_expert_assignment --trace default_gates_logs' - \
    "$WORK/several" "$GENTABLES"
prints totals '[1.0, 2.0]'

# Several runs: a table, or a list.
succeeds metric token_to_expert_assignment --trace "$WORK/even" --trace "$WORK/hand"
[ "$(wc -l <"$stdout")" = 3 ] || die "not a heading and two rows"
sed -n 3p "$stdout" | grep -q "0.745356 .* $WORK/hand\$" || die "no row of the second run"
succeeds metric token_to_expert_assignment --trace "$WORK/even" --trace "$WORK/hand" --json
prints 1.totals '[4.0, 12.0, 0.0, 8.0]'

# Any layout and any form of number, against python3.
run_folder layouts
python3 - "$WORK/layouts" "$WORK/expected.json" <<'END'
import json, math, os, random, sys
random.seed(8)
root, expected = sys.argv[1:]
layouts = [dict(indent=2), dict(indent=4), dict(indent=9), dict(), dict(separators=(",", ":")),
           dict(indent="\t"), dict(indent=0)]
forms = [lambda: random.randint(0, 9), lambda: float(random.randint(0, 99999)), random.random, lambda: 0.0,
         lambda: random.random() * 1e-9, lambda: random.randint(0, 10**14), lambda: random.uniform(0, 1e6),
         lambda: random.randint(0, 9999999), lambda: random.randint(0, 99999) / 100]
columns, imbalance = [[] for _ in range(5)], []
for i in range(60):
    steps, form = random.randint(1, 30), random.choice(forms + [lambda: random.choice(forms)()])
    loads = [[form() for _ in range(5)] for _ in range(steps)]
    log = {"step": list(range(steps)), "num_tokens": [float(j) for j in range(steps)], "expert_loads": loads,
           "model": {"name": "a \"b\" \\", "layers": [1, [], {}, -2.5e-3, None, True, False]}}
    text = json.dumps(dict(random.sample(list(log.items()), 4)), **random.choice(layouts))
    if i % 5 == 0: text = text.replace("\n", "\r\n")
    if i % 7 == 0: text = "\n " + text + " \n"
    os.makedirs(f"{root}/gates_logs_{i % 3}", exist_ok=True)
    open(f"{root}/gates_logs_{i % 3}/gate_logs_{i}.json", "w", newline="").write(text)
    for row in loads:
        for column, load in zip(columns, row): column.append(load)
        mean = math.fsum(row) / 5
        if mean > 0: imbalance.append(math.sqrt(math.fsum((x - mean) ** 2 for x in row) / 5) / mean)
imbalance.sort()
def percentile(share):
    place = share * (len(imbalance) - 1)
    low = int(place)
    return imbalance[low] + (imbalance[low + 1] - imbalance[low]) * (place - low)
totals = [math.fsum(column) for column in columns]
shares = [load / math.fsum(totals) for load in totals]
mean = math.fsum(totals) / 5
json.dump({"totals": totals, "entropy": -math.fsum(p * math.log2(p) for p in shares),
           "variation": math.sqrt(math.fsum((x - mean) ** 2 for x in totals) / 5) / mean,
           "steps": len(columns[0]), "mean": math.fsum(imbalance) / len(imbalance), "max": imbalance[-1],
           "p50": percentile(0.5), "p95": percentile(0.95), "idle": len(columns[0]) - len(imbalance)},
          open(expected, "w"))
END
reads layouts
python3 - "$stdout" "$WORK/expected.json" <<'END' || die "not what python3 computes"
import json, math, sys
got, wanted = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
def near(a, b): assert math.isclose(a, b, rel_tol=1e-12), (a, b)
assert got["totals"] == wanted["totals"], (got["totals"], wanted["totals"])
assert got["summary"]["total_steps"] == wanted["steps"] == got["per_step"]["steps"]
assert got["per_step"]["steps_without_load"] == wanted["idle"]
near(got["summary"]["entropy"], wanted["entropy"])
near(got["summary"]["coefficient_of_variation"], wanted["variation"])
for key, value in got["per_step"]["coefficient_of_variation"].items(): near(value, wanted[key])
assert [row["layer"] for row in got["per_layer"]] == list(range(60))
END

# The picture; the JSON stays on stdout.
needs gnuplot
reads layouts --out "$WORK/pictures/new"
prints summary.num_experts 5
has_colours "$WORK/pictures/new/token_to_expert_assignment.png" \
    "#56b4e9" "#d55e00" "#e69f00" "#0072b2"
reads single --out "$WORK/pictures/single"
