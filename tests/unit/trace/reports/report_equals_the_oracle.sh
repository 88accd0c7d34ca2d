#!/bin/sh
# The report of a real trace equals that of a widely used analyser, cell by cell, apart from the deviations
# in report_oracle.py; at last for a trace of an MI300 that has GPU events without a launch.
# Needs: zlib
. "$SOURCE/tests/unit/metric/lib.sh"
needs python3

golden=$SOURCE/tests/golden/trace/h100_bert
succeeds trace report "$golden/h100_bert.json.gz" --out "$WORK/reports" --csv
[ ! -s "$stderr" ] || die "a message about a complete trace"
ends_with 0 python3 "$SOURCE/tests/unit/trace/reports/report_oracle.py" "$golden" \
    "$WORK/reports/h100_bert_csvs"
cat "$stdout"

# The comparison finds a planted difference.
for change in 's/5.806942210477941/5.806942220477941/' '/aten::eq/d' "s/'stream': 7/'stream': 8/"; do
    rm -rf "$WORK/changed"
    cp -r "$WORK/reports/h100_bert_csvs" "$WORK/changed"
    sed "$change" "$WORK/reports/h100_bert_csvs/ops_unique_args.csv" >"$WORK/changed/ops_unique_args.csv"
    ends_with 1 python3 "$SOURCE/tests/unit/trace/reports/report_oracle.py" "$golden" "$WORK/changed"
done

# The same input gives the same bytes, with any number of workers.
succeeds trace report "$golden/h100_bert.json.gz" --out "$WORK/again" --csv
diff -r "$WORK/reports" "$WORK/again" || die "a second report differs"
gzip -dc "$golden/h100_bert.json.gz" >"$WORK/h100_bert.json"
succeeds trace report "$WORK/h100_bert.json" --out "$WORK/plain" --csv
diff -r "$WORK/reports" "$WORK/plain" || die "the report of the unpacked trace differs"

skip_without_data traces
succeeds trace report "$data/mi300_qwen.json.gz" --out "$WORK/reports" --csv
one_line 'mi300_qwen.json.gz: incomplete: unlinked 463;'
ends_with 0 python3 "$SOURCE/tests/unit/trace/reports/report_oracle.py" "$data/mi300_qwen_csvs" \
    "$WORK/reports/mi300_qwen_csvs"
cat "$stdout"
