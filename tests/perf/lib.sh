# Shared by the scripts with GENTABLES, by default build/bin/gentables, as their first argument. Sourced.
# shellcheck shell=sh disable=SC2034
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
gentables=${1:-$here/../../build/bin/gentables}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out

# least RUNS COMMAND...: the least wall time of so many runs, in microseconds. The folder `$out` is removed
# before each, so that every file is written.
least() {
    runs=$1
    shift
    best=
    while [ "$runs" -gt 0 ]; do
        rm -rf "$out"
        begin=$(date +%s%N)
        "$@" >/dev/null
        time=$((($(date +%s%N) - begin) / 1000))
        if [ -z "$best" ] || [ "$time" -lt "$best" ]; then best=$time; fi
        runs=$((runs - 1))
    done
    echo "$best"
}

# least_of_all RUNS COMMAND...: the least wall and processor time of so many runs, in seconds, and their peak
# memory in MB. `$out` is removed before each.
least_of_all() {
    python3 - "$out" "$@" <<'END_OF_PROGRAM'
import resource, shutil, subprocess, sys, time
out, runs, *command = sys.argv[1:]
wall = processor = 1e9
def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
for _ in range(int(runs)):
    shutil.rmtree(out, ignore_errors=True)
    begin, before = time.perf_counter(), used()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, processor = min(wall, time.perf_counter() - begin), min(processor, used() - before)
print(wall, processor, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
END_OF_PROGRAM
}
