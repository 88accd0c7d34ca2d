#!/bin/sh
# token_to_expert_assignment of a folder that is no run, no mixture of experts or has no gate log: it ends
# with a line that names the fault, and prints no number.
# Needs: yaml
. "$SOURCE/tests/unit/metric/lib.sh"

run=$WORK/run
log=$run/gates_logs_0/gate_logs_1.json
good='{"step": [1, 2], "num_tokens": [3, 3], "expert_loads": [[1, 2], [2, 1]]}'

# ends: the metric of the run, which fails without a number
ends() {
    ends_with 1 "$GENTABLES" metric token_to_expert_assignment --trace "${1:-$run}"
    [ ! -s "$stdout" ] || die "something on stdout"
}

# ends_in LINE PATTERN [RUN]: the same, in the line of other tools, and one of ours
ends_in() {
    ends "${3:-$run}"
    refused "$1" "$2"
}

# bad_log TEXT PATTERN: one bad log among good ones; the pattern is what follows its name
bad_log() {
    printf '%s' "$1" >"$log"
    ends
    one_line "^gentables: $log: $2\$"
}

# bad_card TEXT LINE PATTERN
bad_card() {
    printf '%s\n' "$1" >"$run/card.yaml"
    ends_in "$2" "$3"
}

ends_in "Error: Trace directory not found: $WORK/nowhere" "$WORK/nowhere" "$WORK/nowhere"
mkdir -p "$run/gates_logs_0"
ends_in 'Error: No workload YAML file found in trace directory' \
    "$run: has no .* with workload: { model: { phase: inference, moe: true } }, as the card of a run$"
needs='Error: token_to_expert_assignment metric requires moe: true, found:'
bad_card 'workload: {model: {moe: false}}' "$needs false" 'card.yaml: workload.model.moe: true'
bad_card 'workload: {model: {moe: "true and more"}}' "$needs true and more" 'moe: true'
bad_card 'workload: {model: {moe: [true]}}' "$needs a list or mapping" 'moe: true'
bad_card 'workload: {model: {moe: null}}' "$needs none" 'moe: true'
bad_card 'workload: {phase: inference}' "$needs none" 'moe: true'
bad_card '- a list' 'Error: Invalid workload YAML format' 'card.yaml'
# A loader that reads all of this before it looks at the depth needs minutes.
bad_card "$(printf '%0200000d' 0 | tr 0 '[')" 'Error: Invalid workload YAML format' 'nested too deeply'
printf 'workload: {model: {moe: true}}\n' >"$run/card.yaml"
touch "$run/other.yml"
ends && one_line 'card.yaml, other.yml'
rm "$run/other.yml"

ends_in "{\"error\": \"No gate log data found in $run\"}" 'gate_logs_LAYER.json'
[ "$(sed -n 1p "$stderr" | python3 -c 'import json; print(*json.loads(input()))')" = error ] || die "no JSON"
rmdir "$run/gates_logs_0"
ends_in "{\"error\": \"Gates logs directory not found: $run\"}" 'gates_logs_'
mkdir -p "$run/gates_logs_0" "$run/gates_logs_1"
for i in 0 2 3; do printf '%s' "$good" >"$run/gates_logs_0/gate_logs_$i.json"; done
warns 'gates_logs_1: has no gate_logs' metric token_to_expert_assignment --trace "$run"
rmdir "$run/gates_logs_1"

# Lists that are missing, unequal or uneven.
bad_log '' '.*'
bad_log '[1]' 'is not a JSON object'
bad_log '{}' 'has no step; .*'
bad_log '{"step": [], "expert_loads": []}' 'has no num_tokens; .*'
bad_log '{"step": [1], "num_tokens": [3]}' 'has no expert_loads; .*'
bad_log '{"step": [1], "step": [1], "num_tokens": [3], "expert_loads": [[1, 2]]}' 'byte 14: step .* twice'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[1, 2], [1, 2]]}' \
    '1 values in step, 1 in num_tokens, 2 in expert_loads; .*'
bad_log '{"step": [1, 2], "num_tokens": [3], "expert_loads": [[1, 2], [1, 2]]}' '2 values in step, 1 in .*'
bad_log '{"step": [1, 2], "num_tokens": [3, 3], "expert_loads": [[1, 2], [1, 2, 3]]}' \
    'byte 64: 3 experts in step 2 of expert_loads; 2 in the steps before'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[]]}' 'byte 50: a step .* without experts'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [3]}' \
    'byte 50: 3 in expert_loads; a list is required'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[1, 2, 3]]}' \
    '3 experts, where .*gate_logs_0.* has 2'

# Invalid numbers. One byte more or less in the message would be wrong.
for bad in null '"7"' NaN -Infinity true '{}:{' '[1]:\[1' 01 1. .5 '+1:[+]1' - ']'; do
    bad_log "{\"step\": [1], \"num_tokens\": [3], \"expert_loads\": [[1, ${bad%%:*}]]}" \
        "byte 54: ${bad#*:} in expert_loads; a number is required"
done
bad_log '{"step": [1, null], "num_tokens": [3], "expert_loads": [[1, 2]]}' 'byte 13: null in step; .*'
bad_log '{"step": [1], "num_tokens": ["3"], "expert_loads": [[1, 2]]}' 'byte 29: "3" in num_tokens; .*'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[1, 1e999]]}' 'byte 54: 1e999 in expert_loads; .*'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[1, -2]]}' 'byte 54: a number below zero.*'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[1, 1e16]]}' 'byte 50: .* above 1e15 .*'
bad_log '{"step": [1], "num_tokens": [3], "expert_loads": [[1, 2 3]]}' 'byte 56: .*'
bad_log "$good x" 'byte 0: JSON document ended early .*'
bad_log "$good {}" 'byte 73: { after the object'

# No load in any log.
for i in 0 1 2 3; do
    printf '{"step": [1], "num_tokens": [0], "expert_loads": [[0, 0.0]]}' >"${log%1.json}$i.json"
done
ends_in "{\"error\": \"No gate log data found in $run\"}" 'no expert has any load'
for i in 0 1 2 3; do printf '%s' "$good" >"$run/gates_logs_0/gate_logs_$i.json"; done

# Files that cannot be read are named, the first of them.
rm "$log"
mkfifo "$log"
ends && one_line "$log: is not a file\$"
rm "$log"
mkdir "$log"
ends && one_line "$log: is not a file\$"
rmdir "$log"
ln -s nowhere "$log"
ends && one_line "$log: cannot be read"
printf 'x' >"$run/gates_logs_0/gate_logs_2.json"
ends && one_line "$log: cannot be read.*and 1 more"
rm "$log"
printf '%s' "$good" >"$log"
printf '%s' "$good" >"$run/gates_logs_0/gate_logs_2.json"

# With any byte changed, python's JSON and ours agree whether it is a gate log, and on its sum.
python3 - "$WORK/broken" <<'END'
import json, os, random, sys
random.seed(5)
def refuse(text): raise ValueError(text)
def judge(text):
    try:
        log = json.loads(text.decode(), parse_constant=refuse, object_pairs_hook=lambda pairs:
                         dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("twice"))
        steps, tokens, rows = log["step"], log["num_tokens"], log["expert_loads"]
        assert len(steps) == len(tokens) == len(rows) and rows and rows[0]
        for row in rows: assert isinstance(row, list) and len(row) == len(rows[0])
        for value in steps + tokens + [load for row in rows for load in row]:
            assert type(value) in (int, float) and 0 <= value <= 1e15
        return repr(float(sum(load for row in rows for load in row)))
    except Exception:
        return "refused"
rows = [[1.0, 20.5, 3], [40.0, 0.0, 123456.0]]
log = {"step": [7, 8], "num_tokens": [9, 10], "expert_loads": rows}
os.mkdir(sys.argv[1])
texts = []
for layout in dict(indent=2), dict(), dict(separators=(",", ":")):
    whole = json.dumps(log, **layout).encode()
    texts += [whole[:i] for i in range(len(whole) + 1)]
    for _ in range(700):
        text, at = bytearray(whole), random.randrange(len(whole))
        signs = random.choices(b'0123456789.,eE+-[]{}":\n nult\0\xff', k=random.randint(0, 2))
        text[at:at + random.randint(0, 2)] = signs
        texts.append(bytes(text))
with open(sys.argv[1] + "/list", "w") as listed:
    for i, text in enumerate(texts):
        open(f"{sys.argv[1]}/{i}", "wb").write(text)
        listed.write(f"{i} {judge(text)}\n")
END
cat >"$WORK/judge.lua" <<'END'
local folder = ...
local gates, good, bad = require "core.gates", 0, 0
for line in io.lines(folder .. "/list") do
  local name, wanted = line:match("(%S+) (%S+)")
  local logs, message = gates.read({ folder .. "/" .. name }, { 1 })
  local sum = 0.0
  for _, load in ipairs(logs and logs.totals or {}) do sum = sum + load end
  if wanted == "refused" then bad = bad + 1 else good = good + 1 end
  local agrees = wanted == "refused" and not logs or logs and sum == tonumber(wanted)
  -- Without steps there is no load, which the metric refuses for all logs together.
  if not agrees and not (wanted == "refused" and logs.steps.count == 0) then
    error(("%s: python has %s, we have %s"):format(name, wanted, message or sum))
  end
end
assert(good > 100 and bad > 500, "too few of a kind")
END
succeeds lua "$WORK/judge.lua" "$WORK/broken"

# Unreadable files. Last, because it is left out if there is no unprivileged user.
chmod 000 "$log"
skip_unless_unprivileged_reads "$run/card.yaml"
ends_with 1 unprivileged "$GENTABLES" metric token_to_expert_assignment --trace "$run"
one_line "$log: cannot be read: Permission denied"
chmod 000 "$run/gates_logs_0"
ends_with 1 unprivileged "$GENTABLES" metric token_to_expert_assignment --trace "$run"
chmod 755 "$run/gates_logs_0"
one_line "gates_logs_0: cannot be read: Permission denied"
