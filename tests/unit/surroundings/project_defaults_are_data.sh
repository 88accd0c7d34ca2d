#!/bin/sh
# gentables.lua in the current folder sets defaults of options: the command line comes first, wrong entries
# end in one line, and it can neither call anything, nor start a program, nor lead out of the folder.
. "$SOURCE/tests/lib.sh"
mkdir "$WORK/project"
cd "$WORK/project"
cp -r "$SOURCE/tests/golden/sm90" rows

given() { printf 'return { %s }\n' "$1" >gentables.lua; }

# Options, flags and lists; a command has its full name.
given 'generate = { data_dir = "rows", arch = "sm90", formats = "c", out = "made" }'
succeeds generate
has '^written   made/allreduce_table.h' "$stdout"
has '^gentables: gentables.lua: --arch=sm90 --data-dir=rows --formats=c --out=made$' "$stderr"
succeeds generate --out other --formats=table
has '^written   other/table.csv' "$stdout"
given 'diff = { rows = { "rows" }, ["fail-on"] = "material", threshold = 0.5 }, ["trace merge"] = {}'
succeeds diff rows/table.csv rows/table.csv
has '^gentables: gentables.lua: --fail-on=material --rows=rows --threshold=0.5$' "$stderr"
given 'sweep = { tp = { 2, 4 }, fresh = false }'
ends_with 2 "$GENTABLES" sweep --out nothing
has '^gentables: gentables.lua: --tp=2,4$' "$stderr"
succeeds generate --data-dir rows --arch sm90 --formats c --out made
if grep -q gentables.lua "$stderr"; then die "defaults of another verb"; fi

# Defaults for a folder of rows do not go with a picture of one file, nor those of a picture with a folder.
given 'plot = { data_dir = "rows", arch = "sm90", out = "pictures", kinds = "heatmap", fusion = "NONE" }'
ends_with 2 "$GENTABLES" plot heatmap rows/benchmark.tp2.sm90.csv
has 'plot heatmap needs --fusion F and --out PATH' "$stderr"
ends_with 2 "$GENTABLES" plot heatmap rows/benchmark.tp2.sm90.csv --out one.jpg
has 'one.jpg: ends in neither .png nor .svg' "$stderr"
ends_with 2 "$GENTABLES" plot --formats jpg
has '"jpg" is not one of png, svg' "$stderr"

# Those for single traces do not go with trace report -b, nor those of -b with single traces; the formats of
# the command line replace others.
mkdir traces
echo 'io.write(require "small_trace"(0))' >make.lua
"$GENTABLES" lua make.lua >traces/rank0.json
given '["trace report"] = { formats = "xlsx", out = "made", threads = 256, against = "x", filter = "rank" }'
succeeds trace report -b traces --csv
[ -e traces/traces_rank_performance_report_csvs ] || die "no filter by default"
if grep xlsx "$stdout"; then die "a format by default beside that of the command line"; fi
given '["trace report"] = { csv = true, out = "made", filter = "absent", base = "traces" }'
succeeds trace report traces/rank0.json
has '^written   made/rank0_csvs/' "$stdout"
given '["trace report"] = { csv = true, out = "made", base = "traces" }'
succeeds trace report
has '^written   traces/traces_rank_0_performance_report_csvs' "$stdout"

# Wrong entries.
wrong() { given "$2" && rejects "gentables.lua: $1" generate --data-dir rows --arch sm90; }
wrong 'there is no verb "swep" \(did you mean sweep\?\)' 'swep = {}'
wrong 'generate is a text; a table of options' 'generate = "c"'
wrong 'generate.formatz is no option \(did you mean --formats\?\)' 'generate = { formatz = "c" }'
wrong 'generate.formats is true or false; a text, a number or a list' 'generate = { formats = true }'
wrong 'generate.formats is empty' 'generate = { formats = {} }'
wrong 'generate.allow_loopback is a text; true or false' 'generate = { allow_loopback = "yes" }'
wrong 'the table has an entry without a name; each entry is VERB = \{ OPTION = VALUE \}' \
    'generate = {}, [1] = 2'
wrong 'generate has an entry without a name; each entry is OPTION = VALUE$' \
    'generate = { formats = "c", [1] = 2 }'
wrong 'generate.formats has 257 values; at most 256' \
    "generate = { formats = { $(printf '"c", %.0s' $(seq 257)) } }"
given '' && echo 'print "ran"' >gentables.lua
rejects "gentables.lua:1: .*global 'print'" generate --data-dir rows --arch sm90
echo 'while true do end' >gentables.lua
rejects 'gentables.lua:1: runs too long' generate --data-dir rows --arch sm90

# What others' files must not do.
wrong 'generate.incumbent starts a program or gives rights' 'generate = { incumbent = "a.h" }'
wrong "generate.out: $WORK/other is outside this folder" "generate = { out = \"$WORK/other\" }"
wrong 'generate.out: a/../../b is outside this folder' 'generate = { out = "a/../../b" }'
mkdir "$WORK/elsewhere"
ln -s "$WORK/elsewhere" link
ln -s "$WORK/other" dangling
ln -s rows own
wrong 'generate.out: link is outside this folder' 'generate = { out = "link" }'
wrong 'generate.out: link/new/folder is outside this folder' 'generate = { out = "link/new/folder" }'
wrong 'generate.out: dangling is outside this folder' 'generate = { out = "dangling" }'
given 'generate = { out = "own/new/folder" }'
succeeds generate --data-dir rows --arch sm90 --formats c
rm -r own/new
for option in launcher bench hostfile; do
    given "sweep = { $option = \"touch ran\" }"
    rejects "sweep.$option starts a program" sweep --out rows
done
given 'tune = { hostfile = "hosts" }'
rejects 'tune.hostfile starts a program' tune --op allreduce
[ ! -e ran ] || die "a program ran"
[ ! -e "$WORK/other" ] || die "a folder outside was written"

# Help does not read it.
succeeds generate --help
