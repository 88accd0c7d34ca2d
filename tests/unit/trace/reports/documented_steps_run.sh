#!/bin/sh
# The documented steps of the analysis of a sweep: each with the options, and in the places, of its document.
. "$SOURCE/tests/lib.sh"
cd "$WORK"

cat >make.lua <<'END'
local small_trace = require "small_trace"
for _, threads in ipairs { 256, 512 } do
  for _, channels in ipairs { 28, 42 } do
    for rank = 0, 1 do
      local folder = ("%s/%dthread/nccl_%dchannels/torch_profiler/rank%d"):format(arg[1], threads, channels,
        rank)
      assert(require("core.file").make_folder(folder))
      local text = small_trace(rank):gsub('"dur": 3,', ('"dur": %d,'):format(3 + channels + rank), 1)
      assert(require("core.file").write(folder .. "/trace_step19.json", text))
    end
  end
end
END
sweep=experiments/sweep_20251124_222204
other=experiments/sweep_20251121_155219
for folder in "$sweep" "$other"; do "$GENTABLES" lua make.lua "$folder" || die "no sweep"; done
analysis=$sweep/tracelens_analysis
top=$analysis/top5_gemm_kernels_time_variance

# 4. The GEMMs with most variance.
succeeds trace variance --base-path "$analysis" --threads 256 512 --channels 28 42 --ranks 0 1 --top-k 5
[ "$(wc -l <"$top.csv")" = 9 ] || die "not a row for each of eight ranks: $(cat "$top.csv")"
cp "$top.csv" kept.csv
succeeds trace variance --base-path "$analysis"
cmp "$top.csv" kept.csv || die "other rows by default"

# 6. and 7. Timestamps and collectives.
succeeds trace timestamps --input-csv "$top.csv" --base-path "$sweep"
has 'time_between_min_max_ms' "${top}_with_timestamps.csv"
succeeds trace overlap --input-csv "${top}_with_timestamps.csv" --tracelens-path "$analysis"
has 'total_overlap_duration_ms' "${top}_with_collective_overlap.csv"

# 8. All configurations, or one.
succeeds trace merge "$sweep"
ls "$sweep/merged_traces" >names
printf '%s\n' 256thread_28ch_merged.json 256thread_42ch_merged.json 512thread_28ch_merged.json \
    512thread_42ch_merged.json | cmp - names || die "other merged traces: $(cat names)"
one=256thread/nccl_28channels/torch_profiler
mkdir merged
succeeds trace merge "$sweep/$one" -o merged/one.json -n 2
cmp merged/one.json "$sweep/merged_traces/256thread_28ch_merged.json" || die "another merged trace"
rejects 'trace merge needs --out FILE, unless' trace merge "$sweep/$one/rank0/trace_step19.json"
rejects 'trace variance needs --out DIR, unless' trace variance "$sweep/$one/rank0/trace_step19.json"

# 9. Two sweeps in one page.
for folder in "$sweep" "$other"; do succeeds trace pipeline "$folder" --csv --without plots merge; done
succeeds trace compare --sweep1 "$other" --sweep2 "$sweep" --label1 "Base ROCm" --label2 "ROCm 7.0" \
    --output sweep_comparison.html
has 'Base ROCm' sweep_comparison.html
has 'ROCm 7[.]0' sweep_comparison.html
succeeds trace compare --sweep1 "$other" --sweep2 "$sweep" --label2 new
has 'sweep_20251121_155219' sweep_comparison_report.html
rejects 'sweep1 and --sweep2 belong together' trace compare --sweep1 "$other"
rejects 'A and --sweep1 are the same' trace compare "$other" --sweep1 "$other" --sweep2 "$sweep"
rejects 'trace compare needs A' trace compare --out none.html
rejects 'label1 are the same' trace compare --sweep1 "$other" --sweep2 "$sweep" --label a --label1 b

# 5. Pictures, beside the table.
command -v gnuplot >/dev/null || skip "no gnuplot"
succeeds trace plots --csv-path "$top.csv"
for picture in variance_by_threads_boxplot variance_by_channels_boxplot variance_by_ranks_boxplot \
    variance_violin_combined variance_thread_channel_interaction; do
    [ -s "$analysis/plots/$picture.png" ] || die "no $picture"
done
succeeds trace plots --csv-path "$top.csv" --output-dir "$sweep/pictures"
[ -s "$sweep/pictures/variance_violin_combined.png" ] || die "no picture in --output-dir"
