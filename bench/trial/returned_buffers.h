// Buffers of calls that have returned: overwritten, and looked at again until fini, since nobody may write
// there any more.
#ifndef BENCH_RETURNED_BUFFERS_H
#define BENCH_RETURNED_BUFFERS_H

#include "trial_state.h"

// Overwrites a buffer and takes it. Of too many, the oldest go.
bool returned_keep(struct trial *trial, int index, struct guarded *buffer);

// Looks at those from this number on.
void returned_look_at_last(struct trial *trial, unsigned long first);

// Looks at the oldest, and frees it.
void returned_drop_oldest(struct trial *trial);

#endif
