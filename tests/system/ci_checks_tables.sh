#!/bin/sh
# The steps of action.yml, packaging/ci/gitlab.yml and .pre-commit-hooks.yaml, as they stand there, in a
# project with committed tables: they pass, fail after an edit by hand, and post the changes with stand-ins of
# gh and curl.
# Needs: yaml
. "$SOURCE/tests/lib.sh"
needs git
project=$WORK/project
tables=$project/tables/sm90
mkdir -p "$tables" "$WORK/bin"
PATH=$WORK/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

commit() { git -c user.name=test -c user.email=test@localhost commit -q -m "$1"; }
generate() { succeeds generate --data-dir "$tables" --arch sm90 --out "$tables"; }

# stand_in NAME [COMMAND]: a program that records its arguments and the posted text, and then runs COMMAND.
stand_in() {
    printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\ncp gentables.md "%s/posted"\n%s\n' \
        "$1" "$WORK" "$WORK" "${2:-}" >"$WORK/bin/$1"
    chmod +x "$WORK/bin/$1"
}
stand_in gh "case \$* in *--paginate*) cat '$WORK/ids' ;; esac"
: >"$WORK/ids"
stand_in curl
: >"$WORK/calls"

# step FILE KEY...: the text at these keys of a YAML file.
cat >"$WORK/step.lua" <<'END'
local at = assert(require("core.yaml").decode(io.open(arg[1]):read "a", false))
for i = 2, #arg do at = assert(at[tonumber(arg[i]) or arg[i]], arg[i]) end
print(at)
END
step() { "$GENTABLES" lua "$WORK/step.lua" "$@" || die "no step in $1"; }
action=$(step "$SOURCE/action.yml" runs steps 1 run)
job=$(step "$SOURCE/packaging/ci/gitlab.yml" gentables script 1 | sed "s,/gentables/,$SOURCE/,")
hook=$SOURCE/$(step "$SOURCE/.pre-commit-hooks.yaml" 1 entry)

on_github() {
    env GITHUB_ACTIONS=true GITHUB_ACTION_PATH="$SOURCE" GITHUB_BASE_REF=main GITHUB_REF=refs/pull/7/merge \
        GITHUB_REPOSITORY=owner/project GH_TOKEN=none GITHUB_STEP_SUMMARY="$WORK/summary" \
        TABLES=tables/sm90 sh -c "$action"
}
on_gitlab() {
    env GITLAB_CI=true CI_MERGE_REQUEST_DIFF_BASE_SHA=origin/main CI_MERGE_REQUEST_IID=3 CI_PROJECT_ID=5 \
        CI_API_V4_URL=https://host/api/v4 TABLES=tables/sm90 "$@" sh -c "$job"
}

# A project, and a change of one row with its tables.
cd "$project"
git init -q -b main .
cp "$golden"/benchmark.tp*.csv "$tables"
generate
git add .
commit "tables"
git update-ref refs/remotes/origin/main HEAD
sed '/TWOSHOT/s/,7\.0$/,9.9/' "$tables/benchmark.tp2.sm90.csv" >edited
mv edited "$tables/benchmark.tp2.sm90.csv"
generate
git add .
commit "another row"

ends_with 0 on_github
printed stdout '^\*\*tables/sm90\*\*: the tables are those of the rows'
printed stdout '^### Tables of sm90: [1-9]'
has '^gh pr comment 7 --body-file gentables.md' "$WORK/calls"
cmp gentables.md "$WORK/posted" || die "another text was posted"
cmp gentables.md "$WORK/summary" || die "another text is in the summary"
[ "$(head -n 1 gentables.md)" = "<!-- gentables tables/sm90 -->" ] || die "no mark of its comment"
echo 42 >"$WORK/ids"
ends_with 0 on_github
has '^gh api .*PATCH repos/owner/project/issues/comments/42 -F body=@gentables.md' "$WORK/calls"
ends_with 0 env GITHUB_BASE_REF=nowhere BASE=nowhere sh "$SOURCE/packaging/ci/check_tables.sh" tables/sm90
printed stdout 'There is no commit `origin/nowhere` to compare with'

: >"$WORK/calls"
ends_with 0 on_gitlab GENTABLES_TOKEN=
[ ! -s "$WORK/calls" ] || die "posted without a token"
ends_with 0 on_gitlab GENTABLES_TOKEN=secret
has '^curl .*--header PRIVATE-TOKEN: secret .*body@gentables.md' "$WORK/calls"
has ' https://host/api/v4/projects/5/merge_requests/3/notes$' "$WORK/calls"
ends_with 0 "$hook" tables/sm90/table.csv tables/sm90/benchmark.tp2.sm90.csv README.md

# Posts that fail, an edit by hand, a folder without rows.
stand_in gh 'exit 1'
ends_with 0 on_github
printed stdout '^::warning::the comment could not be written'
stand_in curl 'exit 22'
ends_with 2 on_gitlab GENTABLES_TOKEN=secret
cp -r "$tables" tables/unchanged
echo edited >>"$tables/allreduce_table.h"
ends_with 1 on_github
printed stdout 'the tables are \*\*not\*\* those of the rows'
printed stdout '^+*-*edited'
ends_with 1 "$hook" tables/sm90/table.csv
printed stdout 'to mend it: .*gentables generate'
ends_with 1 "$hook" tables/sm90/table.csv tables/unchanged/table.csv
ends_with 0 "$hook" README.md
ends_in_one_line 2 'tables: has no benchmark' sh "$SOURCE/packaging/ci/check_tables.sh" tables
ends_with 2 sh "$SOURCE/packaging/ci/check_tables.sh"
