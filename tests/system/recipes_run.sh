#!/bin/sh
# The indented lines of docs/recipes.md as they are printed: commands end with exit code 0, and the lines
# below each are in its output. The plug-in for vLLM changes a stand-in of vLLM's module.
. "$SOURCE/tests/lib.sh"
needs python3 gnuplot
cd "$WORK"
for name in cmake packaging python tables tests; do ln -s "$SOURCE/$name" "$name"; done

# The trace folder of eight ranks.
mkdir traces
cat >traces.lua <<'END'
local small_trace = require "small_trace"
for rank = 0, 7 do
  local text = small_trace(rank):gsub('"world_size": 2', '"world_size": 8'):gsub("%[0, 1%]",
    "[0, 1, 2, 3, 4, 5, 6, 7]"):gsub('"Group size": 2', '"Group size": 8')
  assert(io.open(("traces/rank%d.json"):format(rank), "w")):write(text):close()
end
END
succeeds lua traces.lua

commands=0
sed '/^```/,/^```$/d' "$SOURCE/docs/recipes.md" | sed -n 's/^    //p' >indented
while read -r line; do
    case $line in
    "sh cmake/dev.sh "* | "BASE="* | "PYTHONPATH="* | "python3 "*)
        command=$(echo "$line" | sed 's,^sh cmake/dev.sh,"$GENTABLES",')
        ends_with 0 sh -c "$command" </dev/null
        cat "$stdout" "$stderr" >printed
        commands=$((commands + 1))
        ;;
    *) grep -qF -- "$line" printed || die "not printed by: $command: $line; but: $(cat printed)" ;;
    esac
done <indented
[ "$commands" -ge 12 ] || die "only $commands commands were found"

# The plug-in.
module=vllm/distributed/device_communicators
mkdir -p "$module"
touch vllm/__init__.py vllm/distributed/__init__.py "$module/__init__.py"
echo 'CUSTOM_ALL_REDUCE_MAX_SIZES = {"9.0": {2: 5, 4: 5, 6: 5, 8: 7}, "10.0": {2: 9}}' \
    >"$module/all_reduce_utils.py"
sed -n '/^```python/,/^```$/p' "$SOURCE/docs/recipes.md" | sed '/^```/d' >gentables_vllm.py
cat >start.py <<'END'
import gentables_vllm
from vllm.distributed.device_communicators import all_reduce_utils

gentables_vllm.install()
print(all_reduce_utils.CUSTOM_ALL_REDUCE_MAX_SIZES)
END
export PYTHONPATH=.:python PYTHONDONTWRITEBYTECODE=1 GENTABLES_THRESHOLDS="$WORK/out/thresholds.json"
ends_with 0 python3 start.py
printed stdout '^{.9.0.: {2: 219815, 4: 65537, 6: 5, 8: 7}, .10.0.: {2: 9}}$'
