// What a launch finds of the one before it, and leaves to the next: a rank's state, in device memory.
//
// Every block of a launch has a copy of its own, which nobody else reads or writes in that launch; as it
// ends, the blocks that are there deal all copies out among themselves, those of the blocks that are not
// there, too. So no block has to know that others have read theirs, and there is no counter, and no fence,
// at the end of each launch.
#ifndef BENCH_CUDA_STATE_H
#define BENCH_CUDA_STATE_H

#include "arguments.h"

struct State {
    uint32_t epoch;  // launches so far; goes round
    uint32_t turn;   // of ROTATION: which buffer of ONESHOT is this launch's
    uint32_t filled; // accesses, per source rank, that lie in the buffer before that one
};

DEVICE_FUNCTION Word4 *copies_of(const Workspace &workspace) {
    return reinterpret_cast<Word4 *>(workspace.state->copies);
}

DEVICE_FUNCTION State state_of(const Workspace &workspace) {
    Word4 copy = load_plain(copies_of(workspace) + block_index());
    return {copy.word[0], copy.word[1], copy.word[2]};
}

// Ends a launch, in which this rank has got `filled` accesses of each. All threads of all blocks call it.
DEVICE_FUNCTION void end_launch(const Workspace &workspace, State state, uint32_t filled) {
    Word4 next = {{state.epoch + 1, (state.turn + 1) % ROTATION, filled, 0}};
    block_barrier(); // all threads of this block have read its copy
#ifdef FAULT_OWN_STATE_ALONE
    if (thread_index() == 0) store_plain(copies_of(workspace) + block_index(), next);
#else
    for (unsigned block = block_index() + grid_size() * thread_index();
         block < static_cast<unsigned>(workspace.max_blocks); block += grid_size() * block_size()) {
        store_plain(copies_of(workspace) + block, next);
    }
#endif
}

#endif
