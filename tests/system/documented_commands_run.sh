#!/bin/sh
# The indented lines of docs/commands.md as they are printed: each command ends with exit code 0, and the
# lines below it are in its output. STAND_INS and STAND_INS_PROCESSES: libraries in place of those of GPUs, or
# none.
# Needs: yaml xlsx
. "$SOURCE/tests/lib.sh"
needs gnuplot
mkdir "$WORK/here"
cd "$WORK/here"

for folder in data path/to/benchmark/data; do
    mkdir -p "$folder"
    for tp in 2 4; do cp "$golden/benchmark.tp$tp.sm90.csv" "$folder/benchmark.tp$tp.sm89.csv"; done
done
mkdir -p config/gemm_overlap
cat >config/gemm_overlap/gemm_test_1.yaml <<'END'
model: {model_dim: 8, num_layers: 1, mlp_hidden_dim: 16}
training: {batch_size: 2}
dataset: {sequence_length: 3}
END

# Traces: two sweeps, and four runs of eight ranks.
cat >make.lua <<'END'
local file, small_trace = require "core.file", require "small_trace"
local function write(folder, name, rank, shift)
  assert(file.make_folder(folder))
  local text = small_trace(rank):gsub('"dur": 3,', ('"dur": %d,'):format(3 + shift + rank), 1)
    :gsub('"world_size": 2', '"world_size": 8'):gsub("%[0, 1%]", "[0, 1, 2, 3, 4, 5, 6, 7]")
    :gsub('"Group size": 2', '"Group size": 8')
  assert(file.write(folder .. "/" .. name, text))
end
for _, sweep in ipairs { "20251124_222204", "20251121_155219" } do
  for _, threads in ipairs { 256, 512 } do
    for _, channels in ipairs { 28, 42, 56, 70 } do
      for rank = 0, sweep == "20251124_222204" and 7 or 0 do
        write(("experiments/sweep_%s/%dthread/nccl_%dchannels/torch_profiler/rank%d"):format(sweep, threads,
          channels, rank), "trace_step19.json", rank, channels)
      end
    end
  end
end
for i, run in ipairs { "013_profile_544p_bs1", "013_profile_720p_bs1", "014_profile_544p_bs1",
  "014_profile_720p_bs1" } do
  for rank = 0, 7 do write("results/" .. run, ("traces_rank_%d_step_8.json"):format(rank), rank, i) end
end
END
succeeds lua make.lua
succeeds trace pipeline experiments/sweep_20251121_155219 --csv --without merge

# Serving runs, gate logs, kernel summaries.
# serving NAME TTFT
serving() {
    mkdir -p "trace_collection/$1/results_json"
    printf 'workload:\n  model:\n    phase: inference\n' >"trace_collection/$1/card.yaml"
    printf '{"mean_ttft_ms": %s, "mean_tpot_ms": 20.5, "request_throughput": 1.5, "output_throughput": 300}' \
        "$2" >"trace_collection/$1/results_json/run.json"
}
for pair in vllmTP4:baseline vllmEP4:defaultall2all; do
    for sizes in 8_8192 16_8192 64_8192 32_2048 32_4096; do
        serving "Mixtral8x7B-${pair%:*}-Perlmutter[${pair#*:}_$sizes]-group12" 5000
    done
    serving "Mixtral8x7B-${pair%:*}-Perlmutter[${pair#*:}_32_8192]-group12" 4259.41
done
gates=scripts/load_imbalance_experiment-group12
for kind in baseline default_all2all; do
    mkdir -p "$gates/${kind}_gates_logs/gates_logs_0"
    echo '{"step": [1, 2], "num_tokens": [8, 8], "expert_loads": [[4, 4, 0, 0], [0, 0, 0, 8]]}' \
        >"$gates/${kind}_gates_logs/gates_logs_0/gate_logs_0.json"
done
printf 'workload:\n  model:\n    moe: true\n' >"$gates/card.yaml"
tools=tools/communicationOverhead-group_12
mkdir -p "$tools"
for name in EPLBOFF EPLBON; do
    cat >"$tools/$name.csv" <<'END'
Time,Total Time,Instances,Avg,Med,Min,Max,StdDev,Name
60.00%,60.000 ms,100,600.000 μs,590.000 μs,500.000 μs,900.000 μs,50.000 μs,fused_moe_kernel
40.00%,40.000 ms,100,400.000 μs,390.000 μs,300.000 μs,900.000 μs,40.000 μs,ncclDevKernel_AllReduce
END
done

# Two ranks on stand-ins for eight GPUs. Other libraries of GPUs cannot be loaded.
if [ -n "${STAND_INS:-}" ]; then
    mkdir "$WORK/libraries"
    for file in "$STAND_INS"/*; do : >"$WORK/libraries/$(basename "$file")"; done
    cp "$STAND_INS"/libcuda.so.* "$STAND_INS"/libcublasLt.so.* "$STAND_INS_PROCESSES"/libnccl.so.2 \
        "$WORK/libraries"
fi
# sweep COMMAND...: 'gentables workload sweep' with fewer ranks and steps.
sweep() {
    [ -n "${STAND_INS:-}" ] || return 0
    ends_with 0 env STAND_IN=gpus=8 LD_LIBRARY_PATH="$WORK/libraries" sh -c \
        "$* -p 2 --steps 1 --warm-up 0"
}

commands=0 is_left_out=false
sed -n 's/^    //p' "$SOURCE/docs/commands.md" >indented
while read -r line; do
    case $line in
    "gentables "*)
        command=$(echo "$line" |
            sed 's,^gentables,"$GENTABLES",; s, /path/, path/,g; s,/home/user/,,g')
        is_left_out=false
        case $line in
        *" workload sweep "*)
            [ -n "${STAND_INS:-}" ] || is_left_out=true
            sweep "$command" </dev/null
            ;;
        *) ends_with 0 sh -c "$command" </dev/null ;;
        esac
        cat "$stdout" "$stderr" >printed
        commands=$((commands + 1))
        ;;
    *[!0-9.]*) "$is_left_out" || grep -qF -- "$line" printed || die "not printed by: $command: $line" ;;
    *) grep -qxF -- "$line" printed || die "no line that is printed by $command is $line" ;;
    esac
done <indented
[ "$commands" = 35 ] || die "$commands commands were found, not 35"

# The files that their documents name.
for file in data/viz/NONE/benchmark.tp2.sm89_heatmap.png kernel_comparison_results.json \
    data/viz/NONE/benchmark.tp2.sm89_strategy_difference_heatmap.png sweep_comparison.html \
    experiments/sweep_20251124_222204/tracelens_analysis/256thread/individual_reports/perf_28ch_rank0.xlsx \
    experiments/sweep_20251124_222204/tracelens_analysis/256thread/collective_reports/collective_28ch.xlsx \
    experiments/sweep_20251124_222204/tracelens_analysis/comparisons/compare_28ch_rank0_across_threads.xlsx \
    experiments/sweep_20251124_222204/tracelens_analysis/plots/variance_violin_combined.png; do
    [ -s "$file" ] || die "no $file"
done
