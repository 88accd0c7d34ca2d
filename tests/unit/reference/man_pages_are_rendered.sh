#!/bin/sh
# gentables manual: a page for the program, each verb and each command, which groff reads without a warning,
# with every option, and texts that roff would take for its own as they are.
. "$SOURCE/tests/lib.sh"
cd "$WORK"
rejects 'needs --out DIR' manual
succeeds manual --out man1
cat >names.lua <<'END'
for _, of in ipairs(require("reference.declarations").of(require("verbs").list)) do
  print("gentables-" .. of.name:gsub(" ", "-") .. ".1")
end
print "gentables.1"
END
"$GENTABLES" lua names.lua | sort >wanted
find man1 -type f -printf '%f\n' | sort >there
cmp wanted there || die "other pages"
[ "$(wc -l <there)" -gt 30 ] || die "too few pages"

# A text with what roff reads: a backslash, a dot and a quote at the beginning of a line, dashes.
cat >hostile.lua <<'END'
require("verbs.detect").summary = ".so /etc/passwd\n'br \\n(.g --dry-run"
local list = { { name = "detect", help = "x" } }
io.write(require("reference.manual").pages { groups = {}, list = list }[2].text)
END
"$GENTABLES" lua hostile.lua >hostile.1

command -v groff >/dev/null || skip "no groff"
for page in man1/*.1 hostile.1; do
    groff -man -Tascii -ww "$page" >page.txt 2>warnings || die "groff cannot read $page"
    [ ! -s warnings ] || die "$page: $(head -3 warnings)"
done
has "[.]so /etc/passwd 'br .n[(][.]g --dry-run" page.txt
groff -man -Tascii -P-c -P-b -P-u man1/gentables-trace-merge.1 >page.txt
for text in '-o, --out FILE' 'Also --output[.]' '-n, --tp N' 'gentables trace merge' '--gzip'; do
    has "$text" page.txt
done
groff -man -Tascii -P-c -P-b -P-u man1/gentables.1 >page.txt
has 'gentables-sweep[(]1[)]' page.txt
