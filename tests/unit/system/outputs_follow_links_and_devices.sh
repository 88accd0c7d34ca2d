#!/bin/sh
# Outputs: a device or a pipe is written to and stays what it is, a link stays and its file is replaced, and a
# link to nothing is an error.
. "$SOURCE/tests/lib.sh"

table=$SOURCE/tables/host/table.csv
# write_to FILE: a text of one line
write_to() {
    "$GENTABLES" diff "$table" "$table" --format md --out "$1"
}
is_the_line() {
    [ "$(cat "$1")" = "$line" ] || die "$1 contains: $(cat "$1")"
}

write_to "$WORK/usual"
line=$(cat "$WORK/usual")

# A link stays, and leads to the new text; the mode of the file stays, too.
mkdir "$WORK/elsewhere"
echo old >"$WORK/elsewhere/file"
chmod 640 "$WORK/elsewhere/file"
ln -s elsewhere/file "$WORK/link"
write_to "$WORK/link"
[ -L "$WORK/link" ] || die "the link was replaced"
is_the_line "$WORK/elsewhere/file"
[ "$(stat -c %a "$WORK/elsewhere/file")" = 640 ] || die "another mode"
ln -s nothing "$WORK/dangling"
ends_in_one_line 1 'dangling: cannot be written: No such file' write_to "$WORK/dangling"
[ -L "$WORK/dangling" ] || die "a link to nothing was replaced"
[ ! -e "$WORK/nothing" ] || die "a link to nothing was followed"

# Pipes and devices.
mkfifo "$WORK/pipe"
timeout 20 cat "$WORK/pipe" >"$WORK/read" &
write_to "$WORK/pipe"
wait
[ -p "$WORK/pipe" ] || die "the pipe was replaced"
is_the_line "$WORK/read"
if mknod "$WORK/null" c 1 3 2>"$stderr"; then # only root may; never the device of the machine
    write_to "$WORK/null"
    [ -c "$WORK/null" ] || die "a device was replaced"
fi
write_to /dev/stdout >"$WORK/shown"
is_the_line "$WORK/shown"
# A file of the shell keeps what it has, and gets what follows.
echo before >"$WORK/log"
{
    write_to /dev/stdout
    echo after
} >>"$WORK/log"
{
    echo before
    write_to /dev/stdout
    echo after
} >"$WORK/shown"
for log in "$WORK/log" "$WORK/shown"; do
    [ "$(cat "$log")" = "$(printf 'before\n%s\nafter' "$line")" ] || die "$log contains: $(cat "$log")"
done
mkdir "$WORK/folder"
ends_in_one_line 1 'folder: cannot be written: Is a directory$' write_to "$WORK/folder"
if [ -c /dev/full ]; then
    ends_in_one_line 1 '/dev/full: cannot be written: No space left on device$' write_to /dev/full
fi
[ -z "$(find "$WORK" -name '*.tmp')" ] || die "a temporary file is left"
