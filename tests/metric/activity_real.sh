#!/bin/sh
# Metrics of GPU activity on real traces are what an independent computation gives.
. "$(dirname -- "$0")/lib.sh"

skip_without_data traces
command -v python3 >/dev/null || exit 77
python3 "$SOURCE/tests/metric/activity_oracle.py" "$GENTABLES" "$data"
