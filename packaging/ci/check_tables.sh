#!/bin/sh
# Checks committed tables in CI, and posts what a change does to them; used by action.yml and gitlab.yml.
#
#   sh check_tables.sh FOLDER...      in a checkout: folders with rows and the tables that were made of them
#
# Writes gentables.md: for each FOLDER whether the tables are those of the rows, and the differences from the
# target branch, with those that matter. On GitHub it is added to the summary of the job and, in a pull
# request with GH_TOKEN, commented there; a later run for the same FOLDERs edits that comment. A token that
# may not comment, as that of a fork, is a warning. On GitLab it is a note of the merge request, if
# GENTABLES_TOKEN has a token that may write one. Elsewhere BASE names the commit to compare with.
# Exit code 1: tables differ from their rows; 2: something cannot be read, or the note not be written.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/packaging/ci/lib.sh"

# The commit to compare with; empty: none, as in a push.
base_of_change() {
    if [ -n "${GITHUB_BASE_REF:-}" ]; then
        echo "origin/$GITHUB_BASE_REF"
    else
        echo "${BASE:-${CI_MERGE_REQUEST_DIFF_BASE_SHA:-}}"
    fi
}

# add_check FOLDER: one paragraph, and the differences if there are any.
add_check() {
    code=0
    check_folder "$1" >"$work/check" 2>&1 || code=$?
    if [ "$code" -gt "$worst" ]; then worst=$code; fi
    case $code in
    0)
        printf '**%s**: the tables are those of the rows.\n\n' "$1"
        return
        ;;
    1) printf '**%s**: the tables are **not** those of the rows.\n\n' "$1" ;;
    *) printf '**%s**: the tables could not be compared with the rows.\n\n' "$1" ;;
    esac
    printf '```\n'
    head -c "$part" "$work/check"
    printf '\n```\n\n'
}

# add_changes FOLDER: the differences of table.csv from the target branch.
add_changes() {
    if ! git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then
        printf 'There is no commit `%s` to compare with; the checkout needs `fetch-depth: 0`.\n\n' "$base"
        return
    fi
    if ! git show "$base:./$1/table.csv" >"$work/table.csv" 2>/dev/null; then
        printf 'There is no table.csv in `%s` to compare with.\n\n' "$base"
        return
    fi
    code=0
    "$gentables" diff "$work/table.csv" "$1/table.csv" --rows "$1" --formats md >"$work/changes" 2>&1 ||
        code=$?
    if [ "$code" -gt 1 ]; then worst=2; fi
    head -c "$part" "$work/changes"
    echo
}

post_on_github() {
    if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat gentables.md >>"$GITHUB_STEP_SUMMARY"; fi
    number=$(echo "${GITHUB_REF:-}" | sed -n 's,^refs/pull/\([0-9]*\)/.*,\1,p')
    if [ -z "$number" ] || [ -z "${GH_TOKEN:-}" ]; then return; fi
    comments=repos/$GITHUB_REPOSITORY/issues
    own=$(gh api --paginate "$comments/$number/comments" --jq \
        ".[] | select(.body | startswith(\"$mark\")) | .id" 2>/dev/null | head -n 1)
    if [ -n "$own" ]; then
        gh api --silent --method PATCH "$comments/comments/$own" -F body=@gentables.md
    else
        gh pr comment "$number" --body-file gentables.md
    fi || echo "::warning::the comment could not be written; the summary of the job has its text"
}

post_on_gitlab() {
    if [ -z "${GENTABLES_TOKEN:-}" ] || [ -z "${CI_MERGE_REQUEST_IID:-}" ]; then return; fi
    notes=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes
    curl --fail --silent --show-error --output /dev/null --header "PRIVATE-TOKEN: $GENTABLES_TOKEN" \
        --data-urlencode "body@gentables.md" "$notes"
}

if [ $# -eq 0 ]; then
    echo "usage: sh check_tables.sh FOLDER..." >&2
    exit 2
fi
for folder; do
    if [ -z "$(archs_of "$folder")" ]; then
        echo "gentables: $folder: has no benchmark.tp{N}.{arch}.csv" >&2
        exit 2
    fi
done
find_gentables "$root" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
worst=0
part=$((60000 / $# / 2)) # bytes of one text: a comment has 65,536 characters at most
mark="<!-- gentables $* -->" # by which a later run finds its comment
base=$(base_of_change)
{
    echo "$mark"
    for folder; do
        add_check "$folder"
        if [ -n "$base" ]; then add_changes "$folder"; fi
    done
} >gentables.md
cat gentables.md
if [ -n "${GITHUB_ACTIONS:-}" ]; then post_on_github; fi
if [ -n "${GITLAB_CI:-}" ]; then post_on_gitlab || worst=2; fi
exit "$worst"
