/* The order of ONESHOT's buffers and of the flags of TWOSHOT (and of NVLS_TWOSHOT, which has the same) and
 * NVLS_ONESHOT, for RANKS ranks of one block each, over LAUNCHES launches. Every access is a step of its own, and
 * all orders are tried. What memory may do out of order is not modelled; that is ThreadSanitizer's part.
 *
 * -DONESHOT: buffer n % ROTATION of a rank has slots per source; a slot holds the launch that wrote it, or
 * EMPTY. Receiving takes only this launch's message, finds no other, and a launch empties of the buffer before
 * as much as was filled. Messages are of 1 to SIZES slots, of another size in each launch, all sizes tried.
 * -DTWOSHOT: inputs, sums and flags hold the launch that wrote them.
 * -DNVLS_ONESHOT: so do BUFFERS of inputs, which take turns, and flags, of one barrier a launch: a rank that is
 * through may be at the next one, and never beyond. A launch has 1 to BLOCKS blocks a rank, another number each
 * time, all tried, and the flags of the others stand still; epochs go round after EPOCHS of them. */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef LAUNCHES
#define LAUNCHES 5
#endif
#ifndef ROTATION
#define ROTATION 3
#endif
#ifndef SIZES
#define SIZES 1
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef EPOCHS
#define EPOCHS 128
#endif
#define EMPTY 0

#ifdef ONESHOT
byte slot[RANKS * ROTATION * RANKS * SIZES]; /* [rank][buffer][source][access] */
byte filled[RANKS * ROTATION];
byte size[LAUNCHES + 1]; /* of the messages of a launch; chosen before all */
#define SLOT(rank, buffer, source, at) slot[(((rank) * ROTATION + (buffer)) * RANKS + (source)) * SIZES + (at)]
#define BEFORE ((launch + ROTATION - 1) % ROTATION)
#ifdef FAULT_SIZE_OF_NOW
#define TO_CLEAR size[launch]
#else
#define TO_CLEAR filled[me * ROTATION + BEFORE]
#endif

proctype rank_of(byte me) {
    byte launch = 1, peer, at;
    do
    :: launch <= LAUNCHES ->
        peer = 0;
        at = 0;
        do
        :: peer < RANKS && at < size[launch] ->
            atomic {
                assert(SLOT(peer, launch % ROTATION, me, at) == EMPTY); /* else a message would be lost */
                SLOT(peer, launch % ROTATION, me, at) = launch;
                at++
            }
        :: peer < RANKS && at == size[launch] -> at = 0; peer++
        :: else -> break
        od;
#ifndef FAULT_NO_CLEAR
        /* One step: a peer that may write between two of these may do so before the first, where it fails. */
        atomic {
            peer = 0;
            at = 0;
            do
            :: peer < RANKS && at < TO_CLEAR -> SLOT(me, BEFORE, peer, at) = EMPTY; at++
            :: peer < RANKS && at >= TO_CLEAR -> at = 0; peer++
            :: else -> break
            od;
            peer = 0;
            at = 0
        };
#endif
        peer = 0;
        at = 0;
        do
        :: peer < RANKS && at < size[launch] ->
            atomic {
                SLOT(me, launch % ROTATION, peer, at) != EMPTY;
                assert(SLOT(me, launch % ROTATION, peer, at) == launch);
                at++
            }
        :: peer < RANKS && at == size[launch] -> at = 0; peer++
        :: else -> break
        od;
        atomic { filled[me * ROTATION + launch % ROTATION] = size[launch]; launch++ }
    :: else -> break
    od
}
#endif

#ifdef TWOSHOT
byte input[RANKS], sum[RANKS * RANKS], flag[2 * RANKS * RANKS]; /* sum[rank][owner], flag[phase][rank][source] */
#define FLAG(phase, rank, source) flag[((phase) * RANKS + (rank)) * RANKS + (source)]

inline meet(phase) {
    peer = 0;
    do
    :: peer < RANKS -> FLAG(phase, peer, me) = launch; peer++
    :: else -> break
    od;
    peer = 0;
    do
    :: peer < RANKS ->
        atomic {
            FLAG(phase, me, peer) >= launch;
            assert(FLAG(phase, me, peer) == launch); /* with two barriers nobody is ahead */
            peer++
        }
    :: else -> break
    od
}

proctype rank_of(byte me) {
    byte launch = 1, peer;
    do
    :: launch <= LAUNCHES ->
        input[me] = launch;
#ifndef FAULT_NO_BARRIER
        meet(0);
#endif
        peer = 0;
        do
        :: peer < RANKS -> assert(input[peer] == launch); peer++
        :: else -> break
        od;
        peer = 0;
        do
        :: peer < RANKS -> sum[peer * RANKS + me] = launch; peer++
        :: else -> break
        od;
        meet(1);
        peer = 0;
        do
        :: peer < RANKS -> assert(sum[me * RANKS + peer] == launch); peer++
        :: else -> break
        od;
        launch++
    :: else -> break
    od
}
#endif

#ifdef NVLS_ONESHOT
byte input[BUFFERS * RANKS * BLOCKS]; /* [buffer][rank][block] */
byte flag[RANKS * RANKS * BLOCKS];    /* [rank][source][block], modulo EPOCHS */
byte grid[LAUNCHES + 1];              /* blocks of a launch; chosen before all */
byte ended[RANKS], blocks_done[RANKS];
#define INPUT(rank) input[(launch % BUFFERS * RANKS + (rank)) * BLOCKS + block]
#define FLAG(rank, source) flag[((rank) * RANKS + (source)) * BLOCKS + block]
#define EPOCH (launch % EPOCHS)
#define AHEAD(peer) ((FLAG(me, peer) + EPOCHS - EPOCH) % EPOCHS) /* EPOCHS - 1: it is one behind */
#if defined FAULT_NO_LATER_EPOCH
#define HAS_COME(peer) (AHEAD(peer) == 0)
#elif defined FAULT_HALF_OF_ALL_EPOCHS
#define HAS_COME(peer) (AHEAD(peer) < EPOCHS / 2)
#else
#define HAS_COME(peer) (AHEAD(peer) <= 1)
#endif

/* Which launch a rank's block last said that it has come to, which a flag says only modulo EPOCHS. */
byte said[RANKS * BLOCKS];

proctype block_of(byte me, block) {
    byte launch = 1, peer;
    do
    :: launch <= LAUNCHES && block >= grid[launch] && ended[me] >= launch -> launch++ /* it has no such block */
    :: launch <= LAUNCHES && ended[me] == launch - 1 && block < grid[launch] ->
        INPUT(me) = launch;
        peer = 0;
        do
        :: peer < RANKS -> atomic { FLAG(peer, me) = EPOCH; said[me * BLOCKS + block] = launch; peer++ }
        :: else -> break
        od;
        peer = 0;
        do
        :: peer < RANKS ->
            atomic {
                HAS_COME(peer);
                /* Who waits for a launch finds nobody beyond the next one. */
                assert(said[peer * BLOCKS + block] == launch || said[peer * BLOCKS + block] == launch + 1);
                peer++
            }
        :: else -> break
        od;
        peer = 0;
        do
        :: peer < RANKS -> assert(INPUT(peer) == launch); peer++
        :: else -> break
        od;
        atomic {
            blocks_done[me]++;
            if
            :: blocks_done[me] == grid[launch] -> blocks_done[me] = 0; ended[me] = launch
            :: else
            fi;
            launch++
        }
    :: launch > LAUNCHES -> break
    od
}
#endif

init {
    byte rank = 0;
    atomic {
#ifdef ONESHOT
        byte number = 1, chosen;
        do
        :: number <= LAUNCHES -> select(chosen : 1 .. SIZES); size[number] = chosen; number++
        :: else -> break
        od;
#endif
#ifdef NVLS_ONESHOT
        byte number = 1, chosen, block = 0;
        do
        :: number <= LAUNCHES -> select(chosen : 1 .. BLOCKS); grid[number] = chosen; number++
        :: else -> break
        od;
        do
        :: rank < RANKS && block < BLOCKS -> run block_of(rank, block); block++
        :: rank < RANKS && block == BLOCKS -> block = 0; rank++
        :: else -> break
        od
#else
        do
        :: rank < RANKS -> run rank_of(rank); rank++
        :: else -> break
        od
#endif
    }
}
