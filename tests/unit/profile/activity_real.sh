#!/bin/sh
# Metrics of GPU activity on real traces equal an independent computation.
. "$SOURCE/tests/unit/metric/lib.sh"

skip_without_data traces
skip_without_traces
python3 "$SOURCE/tests/unit/profile/activity_oracle.py" "$GENTABLES" "$data"
