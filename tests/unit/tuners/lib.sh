# shellcheck shell=sh
# Shared by the tests of files for tuners; sourced.
. "$SOURCE/tests/readers/lib.sh"

# measured ARCH: rows of 2 and 8 ranks on one node, and of 8 on two, in $WORK/data.
measured() {
    mkdir -p "$WORK/data"
    for placement in 2:1: 8:1: 8:2:.nodes2; do
        ranks=${placement%%:*} suffix=${placement##*:} nodes=${placement#*:}
        nodes=${nodes%%:*}
        {
            echo "$header,nodes,ranks_per_node"
            for size in 1024 32768 1048576 16777216; do
                tree=$((size / 1024 + 5 * nodes * nodes * nodes))
                for choice in RING_SIMPLE_16CH:$((size / 16384 + 30)) \
                    RING_LL128_8CH:$((size / 8192 + 15)) TREE_LL_2CH:$tree; do
                    shape=$size,1,$((size / 4))
                    echo "$ranks,float32,$shape,NCCL_${choice%:*},NONE,allreduce,${choice#*:}" |
                        sed "s/\$/,$nodes,$((ranks / nodes))/"
                done
            done
        } >"$WORK/data/benchmark.tp$ranks$suffix.$1.csv"
    done
}

# compiles NAME: the program of a reader's rules, as $WORK/reader.
compiles() {
    for compiler in $(compilers c); do
        "$compiler" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror "$SOURCE/tests/unit/tuners/$1.c" \
            -o "$WORK/reader"
    done
}

# returns FILE QUESTION ANSWER: the reader's answer by this file. `asked` counts the questions.
asked=0
returns() {
    said=$(echo "$2" | "$WORK/reader" "$1") || die "not read as a whole: $1: $said"
    [ "$said" = "$3" ] || die "$2: $said, not $3"
    asked=$((asked + 1))
}

# best_of SIZE NODES: the fastest in these rows, as readers print it.
best_of() {
    best=$(($1 / 1024 + 5 * $2 * $2 * $2)) answer='tree ll 2'
    if [ $(($1 / 8192 + 15)) -lt $best ]; then best=$(($1 / 8192 + 15)) answer='ring ll128 8'; fi
    if [ $(($1 / 16384 + 30)) -lt $best ]; then answer='ring simple 16'; fi
    echo "$answer"
}

# returns_all FILE [COLLECTIVE]: the reader's answer is the best one at every measured size.
returns_all() {
    for placement in '1 2' '1 8' '2 8'; do
        for size in 1024 32768 1048576 16777216; do
            returns "$1" "${2:+$2 }$size $placement" "$(best_of $size "${placement% *}")"
        done
    done
}

# is_checked ARCH FORMAT FILE [EDIT]: check reports a file that is cut off, edited by hand (an edit of sed),
# or of another program.
is_checked() {
    cp "$3" "$WORK/right"
    for damage in 'head -c 300' "sed ${4:-s/simple/ll/}" 'echo of another program #'; do
        $damage "$WORK/right" >"$3"
        ends_with 1 "$GENTABLES" check --data-dir "$WORK/data" --arch "$1" --tables "${3%/*}" --formats "$2"
        has "^--- $3\$" "$stdout"
        has '^@@ -[0-9]+,[0-9]+ ' "$stdout"
    done
    cp "$WORK/right" "$3"
    succeeds check --data-dir "$WORK/data" --arch "$1" --tables "${3%/*}" --formats "$2"
}
