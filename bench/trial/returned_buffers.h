// Buffers of calls that have returned: they are overwritten, and checked again until fini, to detect late
// writes.
#ifndef BENCH_RETURNED_BUFFERS_H
#define BENCH_RETURNED_BUFFERS_H

#include "trial_state.h"

// Overwrites a buffer and takes it over. Drops the oldest ones if they take too much memory.
bool returned_keep(struct trial *trial, int index, struct guarded *buffer);

// Checks the buffers from number `first` on.
void returned_check(struct trial *trial, unsigned long first);

// Checks the oldest buffer, and frees it.
void returned_drop_oldest(struct trial *trial);

#endif
