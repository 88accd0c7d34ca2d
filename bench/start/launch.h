// Starts the ranks of a run: launch_mpi.c joins processes that an MPI launcher started, launch_threads.c
// starts threads of this process. A program has one of them. launch_processes.c starts processes without MPI.
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include "ranks/group.h"

enum { USUAL_RANKS = 2 }; // without --ranks

// Runs on each rank, in an open group. Returns an exit code.
typedef int rank_function(struct group *group, void *argument);

// What comes before and after the program's name on a command line to start two ranks.
extern const char *const launch_prefix, *const launch_suffix;

// Runs `rank_main` on every rank. `ranks`: of option --ranks, 0 without it. Returns the worst status; 2 if
// there can be no group, with a message of rank 0.
int launch(int *argc, char ***argv, int ranks, double timeout_s, rank_function *rank_main, void *argument);

// The same with a process for each rank; only in programs with launch_threads.c. This process must have no
// thread and no open device. Returns the worst status; -1: a rank died, or did not start, which is on stderr.
// No rank is left then, nor if this process is killed.
int launch_processes(int ranks, double timeout_s, rank_function *rank_main, void *argument);

// Collective. Copies rank 0's bytes to all ranks, without a timeout.
void launch_share(struct group *group, void *data, size_t bytes);

// Ends all ranks after a rank died or hangs.
_Noreturn void launch_abort(void);

#endif
