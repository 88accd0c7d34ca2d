#!/bin/sh
# Reports of real traces of all vendors: their sums agree with those of another program.
. "$SOURCE/tests/unit/metric/lib.sh"
skip_without_data traces
needs python3

succeeds trace report "$data"/*.json.gz --out "$WORK/reports" --csv --include-unlinked
for trace in "$data"/*.json.gz; do
    name=$(basename "$trace" .json.gz)
    ends_with 0 python3 "$SOURCE/tests/unit/trace/reports/report_sums.py" "$trace" \
        "$WORK/reports/${name}_csvs"
    cat "$stdout"
done
