/* The order of ONESHOT's buffers and of the flags of TWOSHOT (and of NVLS_TWOSHOT, which has the same) and
 * NVLS_ONESHOT, for RANKS ranks of one block each, over LAUNCHES launches. Every access is a step of its own, and all orders are tried. What memory may do out of order is not
 * modelled; that is ThreadSanitizer's part.
 *
 * -DONESHOT: buffer n % ROTATION of a rank has slots per source; a slot holds the launch that wrote it, or
 * EMPTY. Receiving takes only this launch's message, finds no other, and a launch empties of the buffer before
 * as much as was filled. Messages are of 1 to SIZES slots, of another size in each launch, all sizes tried.
 * -DTWOSHOT: inputs, sums and flags hold the launch that wrote them.
 * -DNVLS_ONESHOT: so do BUFFERS of inputs, which take turns, and flags, of one barrier a launch: a rank that is
 * through may be at the next one. */
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
    :: peer < RANKS -> FLAG(phase, me, peer) == launch; peer++
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
byte input[BUFFERS * RANKS], flag[RANKS * RANKS]; /* input[buffer][rank], flag[rank][source] */
#ifdef FAULT_NO_LATER_EPOCH
#define HAS_COME(peer) (flag[me * RANKS + peer] == launch)
#else
#define HAS_COME(peer) (flag[me * RANKS + peer] >= launch)
#endif

proctype rank_of(byte me) {
    byte launch = 1, peer;
    do
    :: launch <= LAUNCHES ->
        input[launch % BUFFERS * RANKS + me] = launch;
        peer = 0;
        do
        :: peer < RANKS -> flag[peer * RANKS + me] = launch; peer++
        :: else -> break
        od;
        peer = 0;
        do
        :: peer < RANKS -> HAS_COME(peer); peer++
        :: else -> break
        od;
        peer = 0;
        do
        :: peer < RANKS -> assert(input[launch % BUFFERS * RANKS + peer] == launch); peer++
        :: else -> break
        od;
        launch++
    :: else -> break
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
        do
        :: rank < RANKS -> run rank_of(rank); rank++
        :: else -> break
        od
    }
}
