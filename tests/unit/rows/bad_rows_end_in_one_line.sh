#!/bin/sh
# Every kind of invalid input ends in one line with file, line and a remedy, exit code 2, and nothing written.
. "$SOURCE/tests/lib.sh"

data=$WORK/data
out=$WORK/out
csv=$data/benchmark.tp2.sm90.csv

# refuses PATTERN: expects that generating from $data is rejected.
refuses() {
    rejects "$1" generate --data-dir "$data" --arch sm90 --out "$out"
    [ ! -e "$out" ] || die "something was written"
}

# bad PATTERN LINE...: expects that a file of a good row and these lines is rejected.
bad() {
    pattern=$1
    shift
    rows "$csv" "$row" "$@"
    refuses "$pattern"
}

# bad_bytes PATTERN FORMAT: expects that a file of these bytes, as printf makes them, is rejected.
bad_bytes() {
    mkdir -p "$data"
    # shellcheck disable=SC2059
    printf "$2" >"$csv"
    refuses "$1"
}

refuses "$data: cannot be read"
mkdir -p "$data"
refuses 'has no benchmark.tp\{N\}.sm90.csv'
mkdir "$csv"
refuses 'benchmark.tp2.sm90.csv: is not a file'
rmdir "$csv"
# A FIFO without a writer is rejected without waiting.
mkfifo "$csv"
ends_with 2 timeout 200 "$GENTABLES" generate --data-dir "$data" --arch sm90 --out "$out"
one_line 'benchmark.tp2.sm90.csv: is not a file'
rm "$csv"

bad_bytes 'benchmark.tp2.sm90.csv: is empty' ''
bad_bytes 'has no row with a time' "$header\\n"
rows "$data/benchmark.tp4.sm90.csv" '4,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5'
refuses 'benchmark.tp2.sm90.csv: has no row with a time; measure again, or remove it'
rm "$data/benchmark.tp4.sm90.csv"
bad_bytes ':1: no column "world_size"' 'NCCL\n'
bad_bytes ':1: no column "time \(us\)"' \
    'world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op\n'
bad_bytes ':1: .*"fusion", but an unknown one, "fuson"; rename' \
    'world_size,dtype,size,num_tokens,hidden_size,strategy,fuson,op,time (us)\n'
bad_bytes ':1: unknown column "speed"' "speed,$header\\n"
bad_bytes ':1: unknown column "low\(us\)"' "$header,mode,low(us)\\n"
bad_bytes ':1: no column "high \(us\)"' "$header,low (us)\\n"
bad_bytes ':1: duplicate column "op"' "$header,op\\n"
wide=ééééééééééééééééééééééééééééééééééé # 70 bytes
bad_bytes ':1: unknown column "(é){30}[.]{3}"' "$wide,$header\\n"
bad_bytes ':1: unknown column "x(é){29}[.]{3}"' "x$wide,$header\\n"
bad_bytes 'is UTF-16; save it as UTF-8' '\377\376w\000'
bad_bytes ':1: a lone carriage return' "$header\\r$row\\r"
bad_bytes ':2: fusion is .* lone carriage return' \
    "$header\\n2,bfloat16,2048,1,1024,NCCL,NO\\rNE,allreduce,9.5\\n"
bad_bytes ':2: a quote is opened and not closed' \
    "$header\\n2,\"bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5\\n"
bad_bytes ':2: text after a closing quote' "$header\\n2,\"bfloat16\"x,2048,1,1024,NCCL,NONE,allreduce,9.5\\n"

bad_bytes 'csv: the last line has no line end, so it may be cut off' "$header\\n$row"
bad_bytes 'csv: the last line has no line end, so it may be cut off' "$header\\n${row%.5}"
printf '%s\n%s1' "$header" "$row" >"$csv" # 9.51: a cut changes it by less than 1 %
succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/complete"
bad ':3: size is 4096; 1 tokens of hidden size 1024 are 2048 bytes of bfloat16' \
    '2,bfloat16,4096,1,1024,ONESHOT,NONE,allreduce,1.5'
for time in 1e308 1e-320; do
    bad ":3: time \\(us\\) is \"$time\"; a measured time is from 1e-6 to 1e12 microseconds" \
        "2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,$time"
done
bad ':3: time \(us\) is "fast"; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,fast'
bad ':3: time \(us\) is ""; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,'
bad ':3: time \(us\) is "1.5 "; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5 '
bad ':3: time \(us\) is "0x1p3"; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,0x1p3'
bad ':3: time \(us\) is "nan"; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,nan'
bad ':3: time \(us\) is "inf"; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,inf'
bad ':3: time \(us\) is "1e999"; it must be a number' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1e999'
bad ':3: time \(us\) is "0.0"; a measured time is above 0' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,0.0'
bad ':3: time \(us\) is "-1"; a measured time is above 0' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,-1'
bad ':3: num_tokens is "0"; it must be a whole number above 0' \
    '2,bfloat16,2048,0,1024,ONESHOT,NONE,allreduce,1.5'
bad ':3: hidden_size is "1e3"; it must be a whole number' '2,bfloat16,2048,1,1e3,ONESHOT,NONE,allreduce,1.5'
bad ':3: strategy is "ONESHOTS"; it must be one of MPI, ' \
    '2,bfloat16,2048,1,1024,ONESHOTS,NONE,allreduce,1.5'
bad ':3: fusion is "RMS"; it must be one of ' '2,bfloat16,2048,1,1024,ONESHOT,RMS,allreduce,1.5'
bad ':3: dtype is "bf17"; it must be one of ' '2,bf17,2048,1,1024,ONESHOT,NONE,allreduce,1.5'
bad ':3: op is "reduce"; it must be one of ' '2,bfloat16,2048,1,1024,ONESHOT,NONE,reduce,1.5'
bad ':3: fewer fields' '2,bfloat16,2048,1,1024,ONESHOT,NONE,1.5'
bad ':3: more fields' "2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5,"
bad ':3: world_size is 4 in a file of TP 2; move the row to benchmark.tp4' \
    '4,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5'
bad ':4: the same cell and strategy, NCCL, as in .*csv:2;' \
    '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5' '2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,1.5'
# The same cell by an alias of its dtype, and with an unused line between.
bad ':4: the same cell and strategy, NCCL, as in .*csv:2;' '' '2,bf16,2048,1,1024,NCCL,NONE,allreduce,1.5'

header=$header,'low (us),high (us),mode,placement'
row=$row',9,10,eager,dedicated'
bad ':3: time \(us\) is outside' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5,2,3,eager,dedicated'
bad ':3: mode is "lazy"; it must be one of ' \
    '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5,1,2,lazy,dedicated'
bad ':3: placement is "here"' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5,1,2,eager,here'
bad ':3: low \(us\) is "nan"' '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,1.5,nan,2,eager,dedicated'

# A message with a long path is cut between two characters.
part=$wide$wide/$wide$wide/$wide$wide
for name in x xx; do
    data=$WORK/$name/$part/$part/$part
    csv=$data/benchmark.tp2.sm90.csv
    bad '(é|/)$' '2,bfloat16'
done
data=$WORK/data
csv=$data/benchmark.tp2.sm90.csv

# A file without the right to read it. Last, because the test ends here if no user lacks that right.
rows "$csv" "$row"
skip_unless_unprivileged_reads "$csv"
chmod 777 "$WORK"
ends_with 0 unprivileged "$GENTABLES" generate --data-dir "$data" --arch sm90 --out "$WORK/readable"
chmod 000 "$csv"
ends_with 2 unprivileged "$GENTABLES" generate --data-dir "$data" --arch sm90 --out "$out"
one_line 'benchmark.tp2.sm90.csv: cannot be read: Permission denied'
[ ! -e "$out" ] || die "something was written"
