#!/bin/sh
# A run that a signal ends leaves neither temporary folders, nor unfinished files, nor those of a compiler.
. "$SOURCE/tests/lib.sh"

TMPDIR=$WORK/temporary
export TMPDIR
mkdir "$TMPDIR" "$WORK/out" "$WORK/bin"
# terminated COMMAND...: expects the end by SIGTERM, and that nothing is left.
terminated() {
    ends_with 143 "$@"
    left=$(find "$TMPDIR" "$WORK/out" -mindepth 1)
    [ -z "$left" ] || die "left behind: $left"
}

# The script sends itself a signal while it has a temporary folder.
cat >"$WORK/folder.lua" <<'END_OF_LUA'
local file, scratch = require "core.file", require "system.scratch"
local folder = scratch.folder("gentables-test")
assert(file.make_folder(folder.path .. "/a/b"))
assert(file.write(folder.path .. "/a/b/c", "text"))
os.execute(("ln -s /etc %s/link; kill -TERM $PPID"):format(folder.path))
END_OF_LUA
terminated "$GENTABLES" lua "$WORK/folder.lua"

# The next run removes a folder that SIGKILL has left, but not those that a living run or another program has.
cat >"$WORK/killed.lua" <<'END_OF_LUA'
local scratch, system = require "system.scratch", require "core.system"
local folder = scratch.folder("gentables-test")
os.execute("mkdir $TMPDIR/gentables-others $TMPDIR/gentables-test.abcdef && touch " .. folder.path .. "/file")
local another <close> = scratch.folder("gentables-test")
assert(os.execute(("'%s' lua '%s' '%s'"):format(system.program(), arg[1], folder.path)))
os.execute("kill -KILL $PPID")
END_OF_LUA
cat >"$WORK/living.lua" <<'END_OF_LUA'
local folder <close> = require("system.scratch").folder("gentables-test")
assert(require("core.file").exists(arg[1] .. "/file"), "the folder of a living run is removed")
END_OF_LUA
ends_with 137 "$GENTABLES" lua "$WORK/killed.lua" "$WORK/living.lua"
left=$(cd "$TMPDIR" && echo *)
[ "$(echo "$left" | wc -w)" = 4 ] || die "the killed run has left: $left"
echo 'local folder <close> = require("system.scratch").folder("gentables-test")' >"$WORK/next.lua"
succeeds lua "$WORK/next.lua"
left=$(cd "$TMPDIR" && echo *)
[ "$left" = "gentables-others gentables-test.abcdef" ] || die "after the next run are left: $left"
rm -r "${TMPDIR:?}"/*

# A forked process removes nothing of its parent.
cat >"$WORK/forked.lua" <<'END_OF_LUA'
local file, scratch, workers = require "core.file", require "system.scratch", require "core.workers"
local folder <close> = scratch.folder("gentables-test")
workers.map(1, 1, function() os.execute("kill -TERM $PPID") return "" end, function() end)
assert(file.exists(folder.path), "the folder is removed")
END_OF_LUA
succeeds lua "$WORK/forked.lua"

# A folder that cannot be listed when its job is done, for want of file handles.
cat >"$WORK/handles.lua" <<'END_OF_LUA'
local file, scratch = require "core.file", require "system.scratch"
local folder = scratch.folder("gentables-test")
assert(file.make_folder(folder.path .. "/below"))
local open = {}
for i = 1, 4000 do open[i] = io.open("/dev/null") end
folder:remove()
assert(file.exists(folder.path), "the folder is removed without a file handle")
END_OF_LUA
# shellcheck disable=SC3045 # dash and bash have ulimit -n
(ulimit -n 64 && ends_with 0 "$GENTABLES" lua "$WORK/handles.lua")
[ -z "$(find "$TMPDIR" -mindepth 1)" ] || die "a folder is left in TMPDIR"

# The same while it writes a workbook.
cat >"$WORK/workbook.lua" <<'END_OF_LUA'
local known, xlsx = pcall(require, "core.xlsx")
if not known then os.exit(143) end -- built without libxlsxwriter
local book = assert(xlsx.open(arg[1] .. "/book.xlsx", tostring))
os.execute("kill -TERM $PPID")
return book
END_OF_LUA
terminated "$GENTABLES" lua "$WORK/workbook.lua" "$WORK/out"

# A compiler that leaves a file, and a signal meanwhile.
cat >"$WORK/bin/cc" <<'END_OF_SCRIPT'
#!/bin/sh
touch "${TMPDIR:-/tmp}/ccLeft.s"
kill -TERM "$PPID"
END_OF_SCRIPT
chmod +x "$WORK/bin/cc"
terminated env -u CC PATH="$WORK/bin:$PATH" "$GENTABLES" regret \
    --table "$SOURCE/tables/host/allreduce_table.h" --rows "$SOURCE/tables/host/benchmark.tp2.host.csv"
one_line 'interrupted by SIGTERM'
