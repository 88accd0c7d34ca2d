#!/bin/sh
# trace plots: five pictures of the variance CSV, for any threads, channels and ranks; invalid input ends in
# one line and leaves no picture.
. "$SOURCE/tests/lib.sh"
. "$SOURCE/tests/pictures.sh"
needs gnuplot
five='variance_by_channels_boxplot.png
variance_by_ranks_boxplot.png
variance_by_threads_boxplot.png
variance_thread_channel_interaction.png
variance_violin_combined.png'

has_five() {
    [ "$(cd "$1" && LC_ALL=C ls)" = "$five" ] || die "not the five pictures in $1"
    for name in $five; do
        [ "$(head -c 8 "$1/$name" | od -An -tx1)" = ' 89 50 4e 47 0d 0a 1a 0a' ] || die "$name is no PNG"
    done
}

# Threads x channels x ranks, as trace variance writes them; names hold commas, quotes and line ends.
python3 - "$WORK/all.csv" "$WORK/odd.csv" "$WORK/same.csv" <<'END'
import csv, random, sys
random.seed(1)
columns = ["threads", "channel", "rank", "kernel_name", "kernel_time_min_us", "kernel_time_max_us",
           "time_diff_us", "col_UID"]
def write(path, keys, value, columns=columns):
    with open(path, "w", newline="") as out:
        rows = csv.DictWriter(out, columns)
        rows.writeheader()
        for threads, channel, rank in keys:
            for _ in range(5):
                rows.writerow(dict(zip(columns, [0] * len(columns)), threads=threads, channel=channel,
                                   rank=rank, kernel_name='a "b", c\nd', time_diff_us=value()))
keys = [(t, c, r) for t in (256, 512) for c in (28, 56, 112) for r in range(8)]
write(sys.argv[1], keys, lambda: random.lognormvariate(2, 1))
write(sys.argv[2], [(1, 1, 63), (77, 3, 5)], lambda: random.lognormvariate(2, 3), columns[::-1])
write(sys.argv[3], [(64, 4, 0)], lambda: 0.0)
END
succeeds trace plots "$WORK/all.csv" --out "$WORK/all"
has_five "$WORK/all"
# The content of the pictures, not only texts and axes: boxes and their medians, violins, a line for each
# thread count.
for name in threads channels ranks; do
    has_colours "$WORK/all/variance_by_${name}_boxplot.png" "#9ecae1" "#3182bd" "#d94801"
done
has_colours "$WORK/all/variance_violin_combined.png" "#9ecae1" "#3182bd"
has_colours "$WORK/all/variance_thread_channel_interaction.png" "#0072b2" "#d55e00"
[ "$(wc -l <"$stdout")" = 5 ] || die "the pictures are not named"
succeeds trace plots --csv-path "$WORK/odd.csv" --output-dir "$WORK/odd/deep"
has_five "$WORK/odd/deep"
succeeds trace plots "$WORK/same.csv" "$WORK/odd.csv" # beside the CSV
has_five "$WORK/plots"
succeeds trace plots "$WORK/same.csv" --out "$WORK/same"
has_five "$WORK/same"

# Runs outside of a sweep: trace variance leaves threads and channels empty.
mkdir "$WORK/run"
gzip -dc "$SOURCE/tests/golden/trace/h100_bert/h100_bert.json.gz" >"$WORK/run/rank0.json"
succeeds trace variance "$WORK/run" --out "$WORK/run"
succeeds trace plots "$WORK/run/top5_gemm_kernels_time_variance.csv" --out "$WORK/ranks"
over_ranks='variance_by_ranks_boxplot.png
variance_violin_combined.png'
[ "$(cd "$WORK/ranks" && LC_ALL=C ls)" = "$over_ranks" ] || die "not the pictures over ranks"
grep -q 'no row has threads: pictures over threads are not drawn' "$stderr" || die "no message about threads"
printf 'threads,channel,rank,time_diff_us\n1,2,3,4\n,2,3,5\n' >"$WORK/some.csv"
succeeds trace plots "$WORK/some.csv" --out "$WORK/some"
has_five "$WORK/some"
one_line '1 of 2 rows have no threads: pictures over threads leave them out'

no_pictures() {
    [ ! -e "$WORK/none" ] || [ -z "$(ls "$WORK/none")" ] || die "there is a picture, or what is left of one"
}

wrong() {
    pattern=$1
    shift
    rejects "$pattern" trace plots "$@" --out "$WORK/none"
    no_pictures
}
# wrong_csv PATTERN TEXT
wrong_csv() {
    printf %b "${2:+$2\n}" >"$WORK/bad.csv"
    wrong "$1" "$WORK/bad.csv"
}
wrong 'needs a CSV'
wrong 'No such file' "$WORK/no.csv"
wrong_csv 'is empty' ''
wrong_csv 'has no row' 'threads,channel,rank,time_diff_us'
wrong_csv 'has no column rank' 'threads,channel,time_diff_us\n1,2,3'
wrong_csv 'bad.csv:3: time_diff_us is "fast"' 'threads,channel,rank,time_diff_us\n1,2,3,4\n1,2,3,fast'
wrong_csv 'bad.csv:2: channel is "many"' 'threads,channel,rank,time_diff_us\n1,many,3,4'
wrong_csv 'bad.csv:2: time_diff_us is ""' 'threads,channel,rank,time_diff_us\n1,2,3,'
wrong_csv 'no row has threads, channel or rank' 'threads,channel,rank,time_diff_us\n,,,4'
wrong_csv 'bad.csv:2: time_diff_us is "nan"' 'threads,channel,rank,time_diff_us\n1,2,3,nan'
wrong_csv 'bad.csv:2: 3 fields; the header has 4' 'threads,channel,rank,time_diff_us\n1,2,3'
wrong_csv 'bad.csv:2: a quote is opened and not closed' 'threads,channel,rank,time_diff_us\n1,"2,3,4'

# The bytes of all_to_allv from rank to rank; an empty cell, a receiver more than senders.
printf 'rank,to rank 0 (MB),to rank 1 (MB),to rank 2 (MB)\n0,1.0,2.5,\n1,0.0,4.0,0.5\n' >"$WORK/traffic.csv"
succeeds trace plots "$WORK/traffic.csv" --out "$WORK/traffic"
[ "$(cat "$stdout")" = "written   $WORK/traffic/all2allv_traffic.png" ] || die "the picture is not named"
has_colours "$WORK/traffic/all2allv_traffic.png" "#f2f6fb" "#0b3d75"
wrong_csv 'bad.csv:2: to rank 0 [(]MB[)]: "much" is not a size' 'rank,to rank 0 (MB)\n0,much'
wrong_csv 'bad.csv:2: to rank 0 [(]MB[)]: "-1" is not a size' 'rank,to rank 0 (MB)\n0,-1'
wrong_csv 'bad.csv:1: column "dur" is not of a receiving rank' 'rank,to rank 0 (MB),dur\n0,1,2'
wrong_csv 'bad.csv: has no row to draw' 'rank,to rank 0 (MB)'
wrong 'traffic.csv: is drawn alone; give one CSV' "$WORK/traffic.csv" "$WORK/all.csv"

ends_with 1 env PATH=/nonexistent "$GENTABLES" trace plots "$WORK/all.csv" --out "$WORK/none"
one_line 'pictures need gnuplot'
no_pictures
echo >"$WORK/file"
failed "$WORK/file" trace plots "$WORK/all.csv" --out "$WORK/file"
