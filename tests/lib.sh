# Shared by shell tests. Sourced; GENTABLES (the program), SOURCE (the source tree) and
# WORK (a folder of this test's own) come from CMakeLists.txt.
# shellcheck shell=sh
set -eu
LC_ALL=C
export LC_ALL
rm -rf "$WORK"
mkdir -p "$WORK"
stdout=$WORK/stdout
stderr=$WORK/stderr
header='world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)'
# shellcheck disable=SC2034
row='2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5'
# shellcheck disable=SC2034
golden=$SOURCE/tests/golden/sm90

skip() {
    echo "skipped: $1"
    exit 77
}

# needs TOOL...: skips the test where one of these is not found.
needs() {
    for tool; do command -v "$tool" >/dev/null || skip "no $tool"; done
}

# die TEXT...: ends the test, with the output of its last commands.
die() {
    echo "FAILED: $*"
    for file in stdout stderr out err; do
        if [ -f "$WORK/$file" ]; then sed "s/^/$file: /" "$WORK/$file" | tail -n 100; fi
    done
    exit 1
}
fail() { die "$@"; }

# ends_with CODE COMMAND...: runs it and expects this exit code.
ends_with() {
    wanted=$1
    shift
    code=0
    "$@" >"$stdout" 2>"$stderr" || code=$?
    [ "$code" = "$wanted" ] || die "exit code $code, not $wanted: $*"
}

# one_line PATTERN: expects one line of ours on stderr, with this extended expression.
one_line() {
    [ "$(wc -l <"$stderr")" = 1 ] || die "not one line on stderr"
    grep -q '^gentables: ' "$stderr" || die "not a line of gentables"
    grep -Eq -- "$1" "$stderr" || die "stderr lacks: $1"
}

# succeeds ARGUMENT...: gentables with these arguments ends with exit code 0.
succeeds() { ends_with 0 "$GENTABLES" "$@"; }

# ends_in_one_line CODE PATTERN COMMAND...: runs it; expects this exit code and one line with this pattern.
# rejects PATTERN ARGUMENT...: the same for gentables with these arguments, and exit code 2.
# failed PATTERN ARGUMENT...: the same with exit code 1; warns: with exit code 0.
rejects() { gentables_ends 2 "$@"; }
failed() { gentables_ends 1 "$@"; }
warns() { gentables_ends 0 "$@"; }
gentables_ends() {
    wanted_code=$1 wanted_line=$2
    shift 2
    ends_in_one_line "$wanted_code" "$wanted_line" "$GENTABLES" "$@"
}
ends_in_one_line() {
    wanted_code=$1 wanted_line=$2
    shift 2
    ends_with "$wanted_code" "$@"
    one_line "$wanted_line"
}

# has PATTERN FILE: the file has a line with this extended expression.
has() {
    grep -Eq -- "$1" "$2" || die "$2 lacks $1: $(head -c 2000 "$2")"
}

# printed FILE PATTERN: this file of $WORK, such as `out` or `err`, has a line with this basic expression.
printed() {
    grep -q -- "$2" "$WORK/$1" || die "$1 lacks: $2"
}

# rows FILE LINE...: a benchmark file of these lines, after the usual header.
rows() {
    file=$1
    shift
    mkdir -p "$(dirname -- "$file")"
    { echo "$header" && for line in "$@"; do printf '%s\n' "$line"; done; } >"$file"
}

# counts FORMAT READER VERSION ASKED OBEYED: prints the result of a proof as a line for
# tests/readers/table.sh: this reader was asked for so many choices of a file, and so many answers were the
# file's. The file lists all others as gaps.
counts() { printf 'asked %d obeyed %d: %s | %s | %s\n' "$4" "$5" "$1" "$2" "$3"; }

# unprivileged COMMAND...: runs it as a user to which modes of files apply. root reads and writes everywhere,
# so the command runs as another user.
unprivileged() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        "$@"
    fi
}

# skip_unless_unprivileged_reads FILE: ends the test if there is no such user, or if that user cannot reach
# the file.
skip_unless_unprivileged_reads() {
    if ! unprivileged test -r "$1" || ! unprivileged test -x "$GENTABLES"; then
        skip "no user without privileges reaches the program and its input"
    fi
}
