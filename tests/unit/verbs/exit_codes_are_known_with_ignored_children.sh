#!/bin/sh
# Some runners start this program with the signal of ended children ignored: it still gets their exit codes.
. "$SOURCE/tests/lib.sh"

cat >"$WORK/ask.lua" <<'END'
local child = require "core.process".start { "sh", "-c", "exit 3" }
child:read_line(60)
print((child:close(60)))
END
env --ignore-signal=SIGCHLD "$GENTABLES" lua "$WORK/ask.lua" >"$stdout" 2>"$stderr" || die "the script failed"
grep -q '^exit code 3$' "$stdout" || die "another exit code"
