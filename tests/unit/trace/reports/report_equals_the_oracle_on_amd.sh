#!/bin/sh
# As report_equals_the_oracle, for a trace of an MI300 that holds GPU events without a launch.
. "$SOURCE/tests/unit/metric/lib.sh"
skip_without_data traces
needs python3

# shellcheck disable=SC2154
ends_with 0 "$GENTABLES" trace report "$data/mi300_qwen.json.gz" --out "$WORK/reports" --csv
one_line 'mi300_qwen.json.gz: incomplete: unlinked 463;'
ends_with 0 python3 "$SOURCE/tests/unit/trace/reports/report_oracle.py" "$data/mi300_qwen_csvs" \
    "$WORK/reports/mi300_qwen_csvs"
cat "$stdout"
