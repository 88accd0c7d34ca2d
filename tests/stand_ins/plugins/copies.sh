#!/bin/sh
# copies.sh LIBRARY FAULT...: copies bad.so to bad_FAULT.so beside it. The fault's name is appended to the
# file, where no loader reads it, so that the copies are different libraries for the cache, too.
set -eu
library=$1
shift
for fault in "$@"; do
    copy=${library%.so}_$fault.so
    { cat "$library" && echo "$fault"; } >"$copy.part"
    mv "$copy.part" "$copy"
done
