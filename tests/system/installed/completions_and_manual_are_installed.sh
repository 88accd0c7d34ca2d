#!/bin/sh
# The installed package has completions for each shell, in the folders in which shells look for them, and a
# man page for each verb, as the installed program prints them.
. "$(dirname -- "$0")/../package/lib.sh"

begin installed_reference
program=$GENTABLES_PREFIX/bin/gentables
share=$GENTABLES_PREFIX/share

# same SHELL FILE: the file has the completions of this shell.
same() {
    "$program" completion "$1" >"$work/printed"
    passes cmp "$share/$2" "$work/printed"
}
same bash bash-completion/completions/gentables
same zsh zsh/site-functions/_gentables
same zsh zsh/vendor-completions/_gentables
same fish fish/vendor_completions.d/gentables.fish

passes "$program" manual --out "$work/man1"
passes diff -r "$work/man1" "$share/man/man1"
passes test -s "$share/man/man1/gentables-sweep.1"
