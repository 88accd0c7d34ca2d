#!/bin/sh
# gentables completion: bash, zsh and fish load what it prints without an error, and complete verbs, commands,
# options, values of options and files. A shell that is not installed is left out, and named.
. "$SOURCE/tests/lib.sh"
command -v bash >/dev/null || skip "no bash"
cd "$WORK"
mkdir rows
touch rows.csv

rejects 'no shell "basj" \(did you mean bash\?\); valid: bash, zsh, fish' completion basj
rejects 'takes bash\|zsh\|fish' completion

# completes WORDS... = EXPECTED: what bash offers for the last of the words, sorted, without duplicates.
cat >ask.bash <<'END'
. ./gentables.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_gentables gentables "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}" | sort -u | paste -sd ' '
END
completes() {
    expected=$1
    shift
    given=$(bash --norc ask.bash gentables "$@" 2>&1)
    [ "$given" = "$expected" ] || die "bash offers '$given', not '$expected', for: $*"
}
"$GENTABLES" completion bash >gentables.bash
bash -n gentables.bash || die "bash cannot read its completions"
completes sweep swe
completes 'merge metric' me
completes 'variance' trace var
completes '--out --output' trace report --ou # two options of that command
completes '--timeout' sweep --tim
completes 'both op pass' tune --sync ''
completes 'github' diff --formats g
completes 'rows' generate --data-dir ''
completes 'rows.csv' merge rows.
completes 'none' sweep --budget ''
completes 'trtllm trtllm-autotuner trtllm-header' generate --formats tr
completes 'TPOT TTFT' metric T
completes 'heatmap' plot he
completes 'allgather allreduce alltoall alltoallv' tune --op al
completes 'bfloat16' tune --dtype b
completes 'TWOSHOT_NATIVE' tune --strategies TWOSHOT_N
completes 'confidence crossover' plot --kinds c
completes 'nccl-optimizer nccl-tests nccl-tests-json nccl-tuner' import --from n
completes 'small' workload run -f sm
completes 'bash fish zsh' completion ''
completes 'rows rows.csv' merge row
completes '' sweep --arch ''
completes '' nothing --a

left_out=
if command -v fish >/dev/null; then
    "$GENTABLES" completion fish >gentables.fish
    offers() {
        fish --no-config -c "source gentables.fish; complete -C '$1'" >fish.out 2>fish.err </dev/null
        [ ! -s fish.err ] || die "fish: $(cat fish.err)"
        cut -f 1 fish.out | grep -qx -- "$2" || die "fish does not offer $2 for '$1'"
    }
    offers 'gentables swe' sweep
    offers 'gentables trace var' variance
    offers 'gentables trace merge --gz' --gzip
    offers 'gentables plot heat' heatmap
    offers 'gentables tune --sync p' pass
    if grep -q . fish.out && cut -f 1 fish.out | grep -qx both; then die "fish offers all values"; fi
else
    left_out="$left_out fish"
fi

if command -v zsh >/dev/null; then
    "$GENTABLES" completion zsh >gentables.zsh
    cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -Uz compinit && compinit -u -d ./dump && . ./gentables.zsh && print loa''ded'
zpty -r shell out '*loaded*'
zpty -w -n shell "gentables $1"$'\t'
zpty -r shell out "*$2*"
END
    types() { timeout 60 zsh -f ask.zsh "$1" "$2" </dev/null || die "zsh does not complete '$1' to '$2'"; }
    types 'swe' 'gentables sweep'
    types 'trace var' 'trace variance'
    types 'trace merge --gz' '--gzip'
    types 'tune --sync p' '--sync pass'
    types 'plot heat' 'plot heatmap'
else
    left_out="$left_out zsh"
fi
[ -z "$left_out" ] || skip "not installed:$left_out"
