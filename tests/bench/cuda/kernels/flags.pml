/* A model of ONESHOT's buffers and of the flags of strategies with barriers: RANKS ranks, and LAUNCHES
 * launches of 1 to BLOCKS blocks each. Each access to memory that other ranks read is one step. The model
 * checker tries all orders of steps, with all grids of each launch (-DALTERNATING: 1 and BLOCKS blocks in
 * turn). Memory that reorders accesses is not modelled; ThreadSanitizer tests that.
 *
 * A block stands for its threads. Its accesses have the order of the kernels' loops: its own rank first, then
 * the following ranks. So ranks are alike, and a result for one is true of all.
 *
 * -DONESHOT: buffer n % ROTATION of a rank has slots for each source; a slot contains the launch that wrote
 * it, or EMPTY. A message has up to SIZES accesses, at least one for each block; all sizes of each launch are
 * tried.
 *
 * -DTWOSHOT (NVLS_TWOSHOT and exchange.h are like it), -DNVLS_ONESHOT: flags contain an epoch, from FIRST + 1
 * on, modulo EPOCHS; in the kernels modulo 2^32. A flag is compared by the rule of has_come (ranks.h): this
 * epoch, or the next one. The protected data is one access of rank 0's message, which one rank reads; each
 * access and each reader is tried. One is enough, because accesses do not affect each other. The grid decides
 * which block handles it. No block is absent from more than EPOCHS - 3 launches in a row: its flags would
 * then look like those of the next epoch.
 *
 * -DFAULT_...: the faults that flags_hold_in_the_model.sh plants, and that must be found. */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef LAUNCHES
#define LAUNCHES 5
#endif
#ifndef BLOCKS
#define BLOCKS 1
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
#ifndef EPOCHS
#define EPOCHS 128
#endif
#ifndef FIRST
#define FIRST 0
#endif
#define EMPTY 0

/* The blocks of each launch; of each rank, the ended launches, and the ended blocks of the next one. */
byte grid[LAUNCHES + 1], ended[RANKS], blocks_done[RANKS];

#define OTHER ((me + step) % RANKS)

/* Advances to the next launch that has this block. */
inline next_launch() {
    launch++;
    do
    :: launch <= LAUNCHES && block >= grid[launch] -> launch++
    :: else -> break
    od
}

/* The last block ends the launch of its rank. */
inline end_launch() {
    blocks_done[me]++;
    if
    :: blocks_done[me] == grid[launch] -> blocks_done[me] = 0; ended[me] = launch
    :: else
    fi;
    step = 0;
    next_launch()
}

#ifdef ONESHOT
byte slot[RANKS * ROTATION * RANKS * SIZES]; /* [rank][buffer][source][access] */
byte size[LAUNCHES + 1];                     /* of the messages of a launch */
#define SLOT(rank, turn, source, at)                                                                         \
    slot[(((rank) * ROTATION + (turn) % ROTATION) * RANKS + (source)) * SIZES + (at)]
#ifdef FAULT_NO_WAIT
#define HAS_ARRIVED true
#else
#define HAS_ARRIVED (SLOT(me, launch, OTHER, at) != EMPTY)
#endif
#ifdef FAULT_SIZE_OF_NOW
#define TO_CLEAR size[launch]
#else
#define TO_CLEAR size[launch - 1] /* the accesses of the launch before; 0 for the first launch */
#endif

/* Advances to the slot of the next rank; after the last rank, to the block's next access. */
inline next_access() {
    step++;
    if
    :: step == RANKS -> step = 0; at = at + grid[launch]
    :: else
    fi
}

proctype block_of(byte me, block) {
    byte launch = 0, step = 0, at;
    atomic { next_launch() };
    do
    :: launch > LAUNCHES -> break
    :: atomic { launch <= LAUNCHES && ended[me] == launch - 1 -> at = block };
        do
        :: atomic {
            at < size[launch] ->
            assert(SLOT(OTHER, launch, me, at) == EMPTY); /* else a message would be lost */
            SLOT(OTHER, launch, me, at) = launch;
            next_access()
        }
        /* One step: a write that is possible between two of these is possible before the first, and fails
         * there. */
        :: atomic {
            at >= size[launch] ->
            at = block;
#ifndef FAULT_NO_CLEAR
            do
            :: at < TO_CLEAR && step < RANKS ->
                assert(SLOT(me, launch + ROTATION - 1, step, at) == launch - 1); /* it has been read */
                SLOT(me, launch + ROTATION - 1, step, at) = EMPTY;
                step++
            :: at < TO_CLEAR && step == RANKS -> step = 0; at = at + grid[launch]
            :: else -> break
            od;
            step = 0;
            at = block;
#endif
            break
        }
        od;
        do
        :: atomic {
            HAS_ARRIVED ->
            assert(SLOT(me, launch, OTHER, at) == launch);
            next_access();
            if
            :: at >= size[launch] -> end_launch(); break
            :: else
            fi
        }
        od
    od
}

#else
#if defined TWOSHOT && !defined FAULT_ONE_PHASE
#define PHASES 2
#else
#define PHASES 1
#endif
byte flag[PHASES * RANKS * RANKS * BLOCKS]; /* [phase][rank][source][block], modulo EPOCHS */
byte said[PHASES * RANKS * BLOCKS];         /* the launch of a block, for assertions; kernels lack it */
byte input[BUFFERS], sum;                   /* the protected data: the launch that wrote it */
byte reader, access;
#define FLAG(phase, rank, source)                                                                            \
    flag[(((phase) % PHASES * RANKS + (rank)) * RANKS + (source)) * BLOCKS + block]
#define SAID(phase, rank) said[((phase) % PHASES * RANKS + (rank)) * BLOCKS + block]
#define AHEAD(phase)      ((FLAG(phase, me, OTHER) + EPOCHS - epoch) % EPOCHS) /* EPOCHS - 1: one behind */
#if defined FAULT_NO_LATER_EPOCH
#define HAS_COME(phase) (AHEAD(phase) == 0)
#elif defined FAULT_HALF_OF_ALL_EPOCHS
#define HAS_COME(phase) (AHEAD(phase) < EPOCHS / 2)
#else
#define HAS_COME(phase) (AHEAD(phase) <= 1)
#endif
#define HANDLES (access % grid[launch] == block)
#ifdef TWOSHOT
#define MOST_AHEAD 0 /* with two barriers no rank is ahead */
#define INPUT      input[0]
#else
#define MOST_AHEAD 1
#define INPUT      input[epoch % BUFFERS]
#endif

#define WRITE(what)                                                                                          \
    if                                                                                                       \
    :: me == 0 && HANDLES -> what = launch                                                                   \
    :: else                                                                                                  \
    fi
#define READ(what)                                                                                           \
    if                                                                                                       \
    :: me == reader && HANDLES -> assert(what == launch)                                                     \
    :: else                                                                                                  \
    fi

/* A barrier of block `block` of all ranks: step counts the notified ranks, then those that have come. */
inline meet(phase) {
    do
    :: atomic {
        step < RANKS ->
        FLAG(phase, OTHER, me) = epoch;
        SAID(phase, me) = launch;
        step++
    }
    :: atomic {
        step >= RANKS && HAS_COME(phase) ->
        assert(SAID(phase, OTHER) >= launch && SAID(phase, OTHER) <= launch + MOST_AHEAD);
        step++;
        if
        :: step == 2 * RANKS -> step = 0; break
        :: else
        fi
    }
    od
}

proctype block_of(byte me, block) {
    byte launch = 0, step = 0, epoch = FIRST;
    atomic { next_launch() };
    do
    :: launch > LAUNCHES -> break
    :: atomic {
            launch <= LAUNCHES && ended[me] == launch - 1 ->
#ifdef FAULT_OWN_STATE_ALONE
            epoch = (epoch + 1) % EPOCHS;
#else
            epoch = (FIRST + launch) % EPOCHS;
#endif
#ifndef FAULT_LATE_INPUT
            WRITE(INPUT)
#endif
        };
#ifndef FAULT_NO_RANKS_BARRIER
        meet(0);
#endif
#ifdef FAULT_LATE_INPUT
        atomic { WRITE(INPUT) };
#endif
#ifdef TWOSHOT
        atomic {
            READ(INPUT);
#ifndef FAULT_LATE_SUM
            WRITE(sum)
#endif
        };
#ifndef FAULT_NO_LAST_BARRIER
        meet(1);
#endif
        atomic {
#ifdef FAULT_LATE_SUM
            WRITE(sum);
#endif
            READ(sum);
            end_launch()
        }
#else
        atomic { READ(INPUT); end_launch() }
#endif
    od
}
#endif

/* Chooses the numbers of blocks and accesses of each launch, or the protected access and its reader. */
init {
    byte number = 1, chosen, block = 0, rank = 0;
    byte away[BLOCKS];
    atomic {
        do
        :: number <= LAUNCHES ->
#ifdef ALTERNATING
            chosen = (number % 2 == 0 -> BLOCKS : 1);
#else
            select(chosen : 1 .. BLOCKS);
#endif
            grid[number] = chosen;
#ifdef ONESHOT
            select(chosen : grid[number] .. SIZES);
            size[number] = chosen;
#else
            for (block : 0 .. BLOCKS - 1) {
                if
                :: block < grid[number] -> away[block] = 0
                :: block >= grid[number] && away[block] < EPOCHS - 3 -> away[block]++
                :: else -> goto none_such
                fi
            }
            block = 0;
#endif
            number++
        :: else -> break
        od;
#ifndef ONESHOT
        select(chosen : 0 .. RANKS - 1);
        reader = chosen;
#ifdef ALTERNATING
        access = BLOCKS - 1;
#else
        select(chosen : 0 .. BLOCKS - 1);
        access = chosen;
#endif
        for (number : 0 .. PHASES * RANKS * RANKS * BLOCKS - 1) {
            flag[number] = FIRST
        }
#endif
        do
        :: rank < RANKS && block < BLOCKS -> run block_of(rank, block); block++
        :: rank < RANKS && block == BLOCKS -> block = 0; rank++
        :: else -> break
        od;
none_such:
        skip
    }
}
