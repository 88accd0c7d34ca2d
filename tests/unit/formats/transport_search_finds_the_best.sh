#!/bin/sh
# sweep --transport compares settings, with a stand-in for mpirun that has planted times: it finds the best
# parameters even if the machine's speed changes meanwhile, and writes them to the files for Open MPI. A
# setting that is slower than the defaults somewhere is not chosen. Nothing is measured.
. "$SOURCE/tests/readers/lib.sh"

# Times: eager_limit 32768 and no single copy help the ring; 2 ranks are best under coll/sm with fragments of
# 32 KiB; with 4 ranks that is slower for small messages. At every ninth launch all times change by a factor
# of four; the search detects that by ONESHOT, its control. An eager limit of 65536 makes launches fail; with
# fragments of 8 KiB and 32 segments launches of 2 ranks hang until the timeout of the search, which is long
# enough for the other launches on a busy machine.
mkdir -p "$WORK/bin" "$WORK/data"
cat >"$WORK/bin/mpirun" <<'MPIRUN'
#!/bin/sh
if [ "$1" = --version ]; then
    echo "mpirun (Open MPI) 4.1.4"
    exit
fi
printf "%s\n" "$*" >>"$LAUNCHES"
case "$*" in
    "-n 2 "*"coll_sm_fragment_size 8256 --mca coll_sm_comm_num_segments 32 "*) exec sleep 60 ;;
    *"btl_vader_eager_limit 65536"*) exit 1 ;;
esac
for last in "$@"; do :; done # the file of --output_file
echo "# the table for people"
awk '
    function flag(name, value) { return index($0, "--mca " name " " value " ") > 0 }
    function result(size, strategy, time) {
        printf "%s{\"size\":%d,\"strategy\":\"%s\",", comma, size, strategy
        printf "\"out_of_place\":{\"time\":%.4f}}", time
        comma = ","
    }
    function results(size) {
        factor = int(NR / 9) % 3 == 2 ? 4 : 1
        result(size, "ONESHOT", (1 + size / 4000) * factor)
        if (flag("coll_sm_priority", 90)) factor *= /^-n 2 / ? 0.2 : size < 1024 ? 9 : 0.01
        if (flag("btl_vader_eager_limit", 32768)) factor *= 0.8
        if (flag("btl_vader_single_copy_mechanism", "none")) factor *= 0.7
        if (flag("btl_vader_max_send_size", 65536)) factor *= 1.5
        if (flag("coll_sm_fragment_size", 32832)) factor *= 0.9
        if (flag("coll_sm_comm_num_segments", 128)) factor *= 0.9
        result(size, "MPI", (10 + size / 100) * factor)
        if (/MPI_RING/) result(size, "MPI_RING", (14 + size / 200) * factor)
    }
    END {
        printf "{\"results\":["
        results(256); results(65536); results(1048576)
        print "]}"
    }' "$LAUNCHES" >"$last"
MPIRUN
cat >"$WORK/bin/bench" <<'END'
#!/bin/sh
echo "gentables-bench protocol=3 bench=0123456789abcdef isa=none compiler=none library=Open_MPI_v4.1.4"
END
chmod +x "$WORK/bin/mpirun" "$WORK/bin/bench"
for tp in 2 4; do
    rows "$WORK/data/benchmark.tp$tp.host.csv" "$tp,bfloat16,2048,1,1024,MPI,NONE,allreduce,9.5"
done
cat >"$WORK/data/spec.lua" <<'END'
return { arch = "host", tp = { 2, 4 }, hidden_sizes = { 1024 }, num_tokens = { 1 } }
END
LAUNCHES=$WORK/launches PATH=$WORK/bin:$PATH
export LAUNCHES PATH
sweep() {
    "$GENTABLES" sweep "$WORK/data/spec.lua" --out "$WORK/data" --bench "$WORK/bin/bench" --transport "$@"
}
generate() { "$GENTABLES" generate --data-dir "$WORK/data" --arch host --out "$WORK/out" "$@"; }
ends_with 0 sweep
best='coll_sm_priority=90;coll_sm_control_size=64;coll_sm_fragment_size=32832;coll_sm_comm_num_segments=128'
has "TP 2: best of 24 settings: $best" "$stdout"
best='btl_vader_single_copy_mechanism=none;btl_vader_max_send_size=262144;btl_vader_eager_limit=32768'
has "TP 4: best of 24 settings: $best" "$stdout"
has 'left out: 3, the bench failed: exit code 1' "$stdout"
has 'left out: 1, a launch takes more than 10 s' "$stdout"
ends_with 0 sweep
has 'transport.tp4.host.csv: up to date' "$stdout"

ends_with 0 generate
has '^coll_sm_priority = 90$' "$WORK/out/ompi_tp2.conf"
has '^coll_sm_fragment_size = 32832$' "$WORK/out/ompi_tp2.conf"
if grep -q '^coll_tuned' "$WORK/out/ompi_tp2.conf"; then die "rules beside coll/sm"; fi
has '^btl_vader_single_copy_mechanism = none$' "$WORK/out/ompi_tp4.conf"
has '^btl_vader_eager_limit = 32768$' "$WORK/out/ompi_tp4.conf"
has '^coll_tuned_dynamic_rules_filename = ompi_tp4_rules.conf$' "$WORK/out/ompi_tp4.conf"
if [ -e "$WORK/out/ompi_tp2_rules.conf" ]; then die "rules that no parameter file names"; fi
# Its gain is that of the planted times, whatever the machine's speed.
has '4 ranks, calls in a row: 2\.[789][0-9] times' "$WORK/out/ompi_tp4.conf"
# The rules of 4 ranks under these parameters: the ring above 256 B, and nothing for 5. Under the default
# transport they are others: the ring wins later.
awk '/^4 # ranks/ { on = 1 } /^5 # ranks/ { exit } on && /^[0-9]+ [0-9] 0 0/ { print $2 }' \
    "$WORK/out/ompi_tp4_rules.conf" | tr '\n' ' ' >"$WORK/rules"
[ "$(cat "$WORK/rules")" = "0 4 " ] || die "rules of 4 ranks: $(cat "$WORK/rules")"
has 'Under the parameters of ompi_tp4.conf' "$WORK/out/ompi_tp4_rules.conf"
awk '/^2 # ranks/ { on = 1 } /^3 # ranks/ { exit } on && /^[0-9]+ [0-9] 0 0/ { print $2 }' \
    "$WORK/out/ompi_rules.conf" | tr '\n' ' ' >"$WORK/rules"
[ "$(cat "$WORK/rules")" = "0 4 " ] || die "rules of 2 ranks, alone: $(cat "$WORK/rules")"
# Variables of the environment reach the ranks as one parameter.
has 'mca pml ucx .*--mca mca_base_env_list UCX_TLS=posix;UCX_RNDV_SCHEME=am;UCX_POSIX_SEG_SIZE=' "$LAUNCHES"

# Settings that exceed the budget are reported; the best so far counts: at least the defaults.
for budget in 0.1 1e-06; do
    ends_with 0 sweep --fresh --tp 4 --budget $budget
    has 'TP 4: best of 24 settings: ' "$stdout"
    has "not finished in $budget s: heat [12] of 2, turn [12] of 2 was cut off, with [0-9]* settings left" \
        "$stdout"
done
ends_in_one_line 2 '--transport takes no --launcher' sweep --launcher 'srun -n {ranks}'
sed -i '2s/,MPI,/,MPI_NONE,/' "$WORK/data/transport.tp2.host.csv"
ends_in_one_line 2 'transport.tp2.host.csv:2: no row of a search' generate
rm "$WORK"/data/transport.*
ends_in_one_line 2 'gentables sweep --transport measures' generate --formats ompi-parameters
ends_in_one_line 2 'ompi_rules.conf: no row of a single algorithm of Open MPI; measure MPI_RING' \
    generate --formats ompi
