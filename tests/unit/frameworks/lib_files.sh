# Shared by the proofs of files for frameworks; see tests/lib.sh.
# shellcheck shell=sh
. "$SOURCE/tests/lib.sh"
needs python3
PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$SOURCE/tests/unit/frameworks
export PYTHONDONTWRITEBYTECODE PYTHONPATH

# rules READER ARGUMENT...: runs the rules of a reader on a file; they accept it. Prints what they counted.
rules() {
    reader=$1
    shift
    ends_with 0 python3 "$SOURCE/tests/unit/frameworks/${reader}_rules.py" "$@"
    grep '^asked ' "$stdout" || :
}

# noticed FILE EXPRESSION READER ARGUMENT...: the rules reject the file after this edit by sed, which must
# change it.
noticed() {
    edited=$1
    cp "$edited" "$WORK/unedited"
    sed -E "$2" "$WORK/unedited" >"$edited"
    ! cmp -s "$edited" "$WORK/unedited" || die "sed changes nothing: $2"
    shift 2
    reader=$1
    shift
    ends_with 1 python3 "$SOURCE/tests/unit/frameworks/${reader}_rules.py" "$@"
    grep -q AssertionError "$stderr" || die "the proof fails for another reason"
    cp "$WORK/unedited" "$edited"
}

# line_of EXPRESSION FILE: prints the number of the first line with it.
line_of() { grep -n -- "$1" "$2" | head -n 1 | cut -d: -f1; }

# check_reports PATTERN EXPRESSION FILE ARGUMENT...: after this edit by sed, `check` with these arguments
# prints a line with this extended expression.
check_reports() {
    wanted_fault=$1 edit=$2 edited=$3
    shift 3
    cp "$edited" "$WORK/unedited"
    sed -E "$edit" "$WORK/unedited" >"$edited"
    ends_with 1 "$GENTABLES" check "$@"
    has "$wanted_fault" "$stdout"
    cp "$WORK/unedited" "$edited"
}
