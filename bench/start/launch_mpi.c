// Ranks that an MPI launcher started; see launch.h.
#include "launch.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls/backend.h"
#include "consistency.h"
#include "protocol/protocol.h"
#include "ranks/group_mpi.h"
#include "ranks/watch.h"

const char *const launch_prefix = "mpirun -n 2 ", *const launch_suffix = "";

static MPI_Comm world;

// Rank 0 reports why these ranks cannot work together.
static void refuse(const char *reason) {
    int rank;
    MPI_Comm_rank(world, &rank);
    if (rank != 0) return;
    fprintf(stderr, "gentables-bench: %s\n", reason);
    fprintf(protocol_out(), "error reason=%s\n", reason);
}

int launch(int *argc, char ***argv, int ranks, double timeout_s, rank_function *rank_main, void *argument) {
    if (ranks > 0) {
        fprintf(stderr, "gentables-bench: --ranks is for ranks that are threads; use mpirun -n %d\n", ranks);
        return 2;
    }
    int provided, status = 2;
    // Loading hwloc's plugins for devices takes some milliseconds, in MPI_Init and in processor.c.
    setenv("HWLOC_PLUGINS_PATH", "", 0);
    watch_begin(timeout_s * backend->hang_timeouts);
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided); // the watch is a thread
    world = MPI_COMM_WORLD;
    struct group group;
    char reason[CONSISTENCY_REASON_SIZE];
    if (consistency_check(world, *argc, *argv, reason, sizeof reason) == 0 &&
        group_open(&group, world, timeout_s, reason, sizeof reason) == 0) {
        status = rank_main(&group, argument);
        group_close(&group);
    } else {
        refuse(reason);
    }
    MPI_Finalize();
    return status;
}

void launch_share(struct group *group, void *data, size_t bytes) {
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, group_comm(group));
}

_Noreturn void launch_abort(void) {
    fflush(protocol_out());
    MPI_Abort(world, 1);
    abort();
}
