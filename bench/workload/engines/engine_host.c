// Steps on a processor: OpenBLAS on the thread that computes, collectives on threads of their own
// (workload/comm_threads.h).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "elements/processor.h"
#include "ranks/group_mpi.h"
#include "workload/engine.h"

struct state {
    const struct engine_setup *setup;
    struct transport transport;
    struct comm_pool pool;
    struct multiplier multiplier;
};

static int refuse(char reason[], const char *text) {
    snprintf(reason, PROGRAM_REASON, "%s", text);
    return -1;
}

static int open_transport(struct state *state, char reason[]) {
    const struct engine_setup *setup = state->setup;
    size_t threads = setup->threads < setup->channels ? setup->threads : setup->channels;
    struct transport *transport = &state->transport;
    int level = MPI_THREAD_SINGLE;
    *transport = (struct transport){.kind = setup->transport,
                                    .group = setup->group,
                                    .channels = (int)setup->channels,
                                    .threads = (int)threads};
    MPI_Query_thread(&level);
    if (level < transport->kind->thread_level(transport->threads))
        return refuse(reason, "this MPI does not allow calls of so many threads (MPI_THREAD_MULTIPLE)");
    transport->event_counts = group_map(
        setup->group, sizeof(struct event_count) * MAX_NODE_RANKS * MAX_THREADS, reason, TRANSPORT_REASON);
    if (transport->event_counts == NULL) return -1;
    if (transport->kind->open(transport, reason) == 0) return 0;
    group_unmap(transport->event_counts, sizeof(struct event_count) * MAX_NODE_RANKS * MAX_THREADS);
    return -1;
}

static void close_transport(struct state *state) {
    state->transport.kind->close(&state->transport);
    group_unmap(state->transport.event_counts, sizeof(struct event_count) * MAX_NODE_RANKS * MAX_THREADS);
}

static int open_engine(const struct engine_setup *setup, void **to, char reason[PROGRAM_REASON]) {
    struct state *state = calloc(1, sizeof *state);
    bool has_room = state != NULL && multiplier_open(&state->multiplier, setup->blas, setup->program) == 0;
    if (!group_mpi_all(setup->group, has_room)) {
        if (has_room) multiplier_close(&state->multiplier);
        free(state);
        return refuse(reason, "out of memory");
    }
    state->setup = setup;
    if (open_transport(state, reason) != 0) {
        multiplier_close(&state->multiplier);
        free(state);
        return -1;
    }
    bool started = comm_pool_start(&state->pool, &state->transport, setup->program, setup->wait) == 0;
    *to = state;
    if (group_mpi_all(setup->group, started)) return 0;
    if (started) comm_pool_end(&state->pool);
    close_transport(state);
    multiplier_close(&state->multiplier);
    free(state);
    return refuse(reason, "out of memory or of threads");
}

static void close_engine(void *of) {
    struct state *state = of;
    comm_pool_end(&state->pool);
    MPI_Barrier(group_comm(state->setup->group));
    close_transport(state);
    multiplier_close(&state->multiplier);
    free(state);
}

static void describe(const void *of, struct engine_description *description) {
    const struct state *state = of;
    const struct blas *blas = state->setup->blas;
    *description = (struct engine_description){.backend = "host",
                                               .clock = "host_thread",
                                               .transport_kernel = state->transport.kind->kernel,
                                               .channels = state->transport.channels,
                                               .threads = state->pool.size,
                                               .multiprocessors = 1,
                                               .streams = state->pool.size};
    processor_name(description->device, TEXT_SIZE);
    snprintf(description->library, TEXT_SIZE, "%s on %s", blas->version, blas->core);
    for (int i = 0; i < DTYPES; i++) {
        snprintf(description->gemm_kernels[i], TEXT_SIZE, "openblas_%s_sgemm%s%s", blas->core,
                 i == DTYPE_FLOAT32 ? "" : "_of_", i == DTYPE_FLOAT32 ? "" : short_dtype_names[i]);
        description->computed_in[i] = DTYPE_FLOAT32;
    }
    if (state->multiplier.a != NULL)
        snprintf(
            description->note, NOTES_SIZE,
            "OpenBLAS computes in fp32: the time of a GEMM of a 16-bit type includes widening its elements"
            " before and rounding them after it");
    for (int i = 0; i < state->pool.size; i++) description->tids[i] = state->pool.threads[i].tid;
}

static uint64_t step(void *of, enum step_mode mode, struct step_notes *notes) {
    struct state *state = of;
    return step_run(state->setup->program, &state->multiplier, &state->pool, mode, notes);
}

static const char *problem(const void *of) {
    const char *failure = group_failure(((const struct state *)of)->setup->group);
    return failure != NULL ? failure : "";
}

const struct engine engine_host = {.name = "host",
                                   .needs_blas = true,
                                   .open = open_engine,
                                   .close = close_engine,
                                   .describe = describe,
                                   .step = step,
                                   .problem = problem};
