#!/bin/sh
# The hook of .pre-commit-hooks.yaml: the tables beside changed files are those of their rows.
#
#   sh pre_commit.sh FILE...      exit code 1: tables differ; the output has the command that mends them
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/packaging/ci/lib.sh"

folders=$(for file; do dirname -- "$file"; done | sort -u)
gentables=
code=0 worst=0
IFS='
'
for folder in $folders; do
    if [ -z "$(archs_of "$folder")" ]; then continue; fi
    if [ -z "$gentables" ]; then find_gentables "$root" >&2; fi
    check_folder "$folder" || worst=$?
    if [ "$worst" -gt "$code" ]; then code=$worst; fi
done
exit "$code"
