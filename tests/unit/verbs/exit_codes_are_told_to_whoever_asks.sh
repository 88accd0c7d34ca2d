#!/bin/sh
# Who starts this program may have its children ignored, as some runners do: how they ended is known all the
# same.
. "$SOURCE/tests/lib.sh"

cat >"$WORK/ask.lua" <<'END'
local child = require "core.process".start { "sh", "-c", "exit 3" }
child:read_line(60)
print((child:close(60)))
END
env --ignore-signal=SIGCHLD "$GENTABLES" lua "$WORK/ask.lua" >"$stdout" 2>"$stderr" || die "it failed"
grep -q '^exit code 3$' "$stdout" || die "another exit code"
