#!/bin/sh
# A rank that is killed, any rank at any place, is named in the error, the summary and the log, at each of 10
# places (20 with GENTABLES_NIGHTLY=1), of which some run at once: by this script, called with a transport, a
# rank and words.
[ $# = 0 ] || WORK=$WORK/$(echo "$*" | tr -c 'a-z0-9\n' _)
. "$SOURCE/tests/unit/workload/lib.sh"
[ $# != 0 ] || needs_blas
. "$SOURCE/tests/mpirun.sh"

endless=$(workload endless <<'END'
return { name = "endless", tokens = 8, steps = 50000, warm_up = 0,
  layers = { { name = "l", gemms = { { name = "g", n = 8, k = 8 } } } } }
END
)

# killing RANK WORDS: a launcher that kills this rank as soon as a line begins with these words.
killing() {
    cat >"$WORK/killing" <<END
#!/bin/sh
shift
$mpirun -n 2 sh -c '
    [ "\$OMPI_COMM_WORLD_RANK" != $1 ] || echo \$\$ >"$WORK/victim"
    exec "\$0"' "\$@" |
    while read -r line; do
        echo "\$line"
        case \$line in
        "$2"*) kill -9 "\$(cat "$WORK/victim")" 2>/dev/null ;;
        esac
    done
END
    chmod +x "$WORK/killing"
}

# killed TRANSPORT RANK WORDS
killed() {
    killing "$2" "$3"
    ends_with 1 "$GENTABLES" workload sweep -f "$endless" -p 2 -c 1 -t 1 --transport "$1" --fresh \
        --launcher "$WORK/killing {ranks}" -o "$WORK/sweep_20260102_030405"
    died="rank $2 died: signal 9 [(]Killed[)]"
    # mpirun cannot always name a rank that has hardly begun (generator/conversation/launcher.lua).
    [ "$3" != hello ] || died="($died|rank $2 died|one rank died; mpirun does not name it)"
    one_line "1 thread, 1 channel: failed after .*: $died"
    has "^1 +1 +failed .*$died" "$WORK"/sweep_*/nccl_thread_sweep_summary_20260102_030405.txt
    has "^failed: $died" "$WORK/sweep_20260102_030405/1thread/nccl_1channels/run_output.log"
}

if [ $# != 0 ]; then
    killed "$@"
    exit
fi
more="2 5 10 50 200"
[ "${GENTABLES_NIGHTLY:-}" = 1 ] || more=
rank=0
for transport in builtin mpi; do
    # shellcheck disable=SC2086 # a list of numbers
    for words in hello accepted $(printf 'progress_done=%s_ ' 1 3 100 $more); do
        rank=$((1 - rank))
        printf '%s\0' "$transport" "$rank" "$(echo "$words" | tr _ ' ')"
    done
done | xargs -0 -P 4 -n 3 sh "$0" || die "some of these, see above"
