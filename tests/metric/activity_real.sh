#!/bin/sh
# Metrics of GPU activity on real traces are what an independent computation gives.
. "$(dirname -- "$0")/lib.sh"

skip_without_data traces
skip_without_traces
python3 "$SOURCE/tests/metric/activity_oracle.py" "$GENTABLES" "$data"
