#!/bin/sh
# The former place of tests/style/style.sh.
exec sh "$(dirname -- "$0")/../style/style.sh" "$@"
