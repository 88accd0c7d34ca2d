/* The order of ONESHOT's buffers and TWOSHOT's flags, for RANKS ranks of one block each, over LAUNCHES launches.
 * Every access is a step of its own, and all orders are tried. What memory may do out of order is not modelled;
 * that is ThreadSanitizer's part.
 *
 * -DONESHOT: buffer n % ROTATION of a rank has a slot per source; a slot holds the launch that wrote it, or
 * EMPTY. Receiving takes only this launch's message, finds no other, and a launch empties the buffer before.
 * -DTWOSHOT: inputs, sums and flags hold the launch that wrote them. */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef LAUNCHES
#define LAUNCHES 5
#endif
#ifndef ROTATION
#define ROTATION 3
#endif
#define EMPTY 0

#ifdef ONESHOT
byte slot[RANKS * ROTATION * RANKS]; /* [rank][buffer][source] */
#define SLOT(rank, buffer, source) slot[((rank) * ROTATION + (buffer)) * RANKS + (source)]

proctype rank_of(byte me) {
    byte launch = 1, peer;
    do
    :: launch <= LAUNCHES ->
        peer = 0;
        do
        :: peer < RANKS ->
            assert(SLOT(peer, launch % ROTATION, me) == EMPTY); /* else a message would be lost */
            SLOT(peer, launch % ROTATION, me) = launch;
            peer++
        :: else -> break
        od;
#ifndef FAULT_NO_CLEAR
        peer = 0;
        do
        :: peer < RANKS ->
            SLOT(me, (launch + ROTATION - 1) % ROTATION, peer) = EMPTY;
            peer++
        :: else -> break
        od;
#endif
        peer = 0;
        do
        :: peer < RANKS ->
            SLOT(me, launch % ROTATION, peer) != EMPTY;
            assert(SLOT(me, launch % ROTATION, peer) == launch);
            peer++
        :: else -> break
        od;
        launch++
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

init {
    byte rank = 0;
    atomic {
        do
        :: rank < RANKS -> run rank_of(rank); rank++
        :: else -> break
        od
    }
}
