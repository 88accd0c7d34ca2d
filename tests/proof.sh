# Slow proofs: tests with a result that depends on their inputs alone, so that one run for each set of inputs
# is enough. .ci/proven lists the inputs for which a proof holds, as "HASH NAME". Sourced.
#
#   proof_inputs FILE... -- WORD...   at the start: skips the test if the list has the hash of these files, of
#                                     the script itself and of these words (versions of tools)
#   proof_holds                       at the end: prints the line to commit
#
# SOURCE is the tree, WORK an existing folder of the test's own. GENTABLES_PROVE=all runs every proof.
# shellcheck shell=sh
proof_name=$(basename "$0" .sh)
proof_hash=''

proof_inputs() {
    {
        sha256sum <"$0"
        while [ "$1" != -- ]; do
            printf '%s ' "$(basename "$1")"
            sha256sum <"$1" || return 1
            shift
        done
        shift
        printf '%s\n' "$@"
    } >"$WORK/proof_inputs"
    proof_hash=$(LC_ALL=C sort "$WORK/proof_inputs" | sha256sum | cut -c 1-32)
    if [ "${GENTABLES_PROVE:-}" != all ] && grep -qsx "$proof_hash $proof_name" "$SOURCE/.ci/proven"; then
        echo "skipped: proven already: $proof_hash $proof_name"
        exit 77
    fi
}

proof_holds() {
    echo "proven; to skip it while its inputs stay the same, add to .ci/proven: $proof_hash $proof_name"
}
