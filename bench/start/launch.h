// How the ranks of a run come to be: launch_mpi.c joins those that a launcher of MPI started,
// launch_threads.c starts threads of this process. A program has one of them.
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include "ranks/group.h"

// What comes before the program's name on a command line, and what after it says how many ranks.
extern const char *const launch_prefix, *const launch_suffix;

// Runs `rank_main` on every rank, in an open group; `ranks`: how many are asked for, 0 where the launcher
// says so. Returns the worst status; 2 where there can be no group, which rank 0 says.
int launch(int *argc, char ***argv, int ranks, double timeout_s, int (*rank_main)(struct group *, void *),
           void *argument);

// Collective. Rank 0's bytes on all ranks, however long rank 0 takes to come.
void launch_share(struct group *group, void *data, size_t bytes);

// A rank is gone or hangs: there is no orderly end, so all ranks are ended. Does not return.
_Noreturn void launch_abort(void);

#endif
