#!/bin/sh
# A pipe, a device, and a link to one are no input: verbs reject them, and do not wait or read without an end.
. "$SOURCE/tests/lib.sh"

table=$SOURCE/tables/host/table.csv
mkfifo "$WORK/pipe"
ln -s /dev/zero "$WORK/endless"
# refused ARGUMENT...: rejected, within a time that is far above what that takes.
refused() {
    ends_in_one_line 2 "(pipe|endless): is not a file$" timeout 200 "$GENTABLES" "$@"
}
for input in "$WORK/pipe" "$WORK/endless"; do
    refused import "$input" --out "$WORK/table.csv"
    refused import "$input" --from osu --tp 2 --out "$WORK/table.csv"
    refused diff "$input" "$table"
    refused diff "$table" "$input"
    refused lua "$input"
    refused merge "$input" --out "$WORK/rows"
    refused regret --table "$input" --rows "$SOURCE/tables/host/benchmark.tp2.host.csv"
    refused sweep "$input" --out "$WORK/rows" --launcher 'false {ranks}'
done
rejects ': is not a file$' import "$WORK" --out "$WORK/table.csv"

# A script may begin with a line for the shell.
printf '#!/usr/bin/env gentables\nprint(arg[1], select("#", ...))\nerror("here")\n' >"$WORK/script.lua"
ends_with 2 "$GENTABLES" lua "$WORK/script.lua" one
[ "$(cat "$stdout")" = "$(printf 'one\t1')" ] || die "another output"
grep -q 'script.lua:3: here' "$stderr" || die "another line"
