// An example of a plug-in that wraps another library's calls: an allreduce by MPI_Reduce and MPI_Bcast, and
// an allgather by MPI_Allgather, on the communicator in gt_rank. Build it with mpicc, or with MPI's flags.
//
//   mpicc -O2 -shared -fPIC -I bench/plugins bench/plugins/examples/reduce_broadcast.c -o reduce_broadcast.so
//   build/bin/gentables tune --op allreduce,allgather --dtype float32 --plugin ./reduce_broadcast.so
#include "plugin.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

struct state {
    int rank;
    MPI_Comm comm;
    const char *error;
};

struct plan {
    struct state *state;
    int op, count;
};

// The communicator is the harness's; a duplicate keeps messages apart.
static gt_status mpi_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL || rank->comm_kind != GT_COMM_MPI) {
        free(made);
        return GT_FAILED;
    }
    made->rank = rank->rank;
    made->error = "";
    *state = made;
    if (MPI_Comm_dup(*(const MPI_Comm *)rank->comm, &made->comm) == MPI_SUCCESS) return GT_OK;
    free(made);
    return GT_FAILED;
}

static gt_status mpi_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                             void **plan) {
    (void)candidate;
    if (call->count > INT32_MAX) return GT_UNSUPPORTED;
    struct plan *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    *made = (struct plan){state, call->op, (int)call->count};
    *workspace_bytes = 0;
    *plan = made;
    return GT_OK;
}

static gt_status mpi_run(void *plan, const gt_buffers *buffers, void *stream) {
    const struct plan *todo = plan;
    struct state *state = todo->state;
    int status;
    (void)stream;
    if (todo->op == GT_OP_ALLGATHER) {
        status = MPI_Allgather(buffers->send, todo->count, MPI_FLOAT, buffers->receive, todo->count,
                               MPI_FLOAT, state->comm);
    } else {
        status = MPI_Reduce(buffers->send, buffers->receive, todo->count, MPI_FLOAT, MPI_SUM, 0, state->comm);
        if (status == MPI_SUCCESS)
            status = MPI_Bcast(buffers->receive, todo->count, MPI_FLOAT, 0, state->comm);
    }
    state->error = status == MPI_SUCCESS ? "" : "a call of MPI failed";
    return status == MPI_SUCCESS ? GT_OK : GT_FAILED;
}

static void mpi_release(void *plan) {
    free(plan);
}

static void mpi_fini(void *state) {
    MPI_Comm_free(&((struct state *)state)->comm);
    free(state);
}

static const char *mpi_error(void *state) {
    return state == NULL ? "no communicator of MPI" : ((struct state *)state)->error;
}

static const gt_candidate candidate = {
    .size = sizeof candidate,
    .name = "REDUCE_BROADCAST",
    .ops = 1u << GT_OP_ALLREDUCE | 1u << GT_OP_ALLGATHER,
    .dtypes = 1u << GT_FLOAT32,
    .reduce_ops = 1u << GT_SUM,
    .fusions = 1u << GT_FUSION_NONE,
    .memory = GT_MEMORY_HOST,
    .places = GT_PLACE_OUT,
    .comm = GT_COMM_MPI,
};
static const gt_candidate *const candidates[] = {&candidate};

static const gt_plugin plugin = {
    .size = sizeof plugin,
    .abi = GENTABLES_PLUGIN_ABI,
    .name = "reduce_broadcast",
    .version = "1",
    .candidate_count = 1,
    .candidates = candidates,
    .init = mpi_init,
    .prepare = mpi_prepare,
    .run = mpi_run,
    .release = mpi_release,
    .fini = mpi_fini,
    .error = mpi_error,
};

const gt_plugin *gentables_plugin(uint32_t abi) {
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
