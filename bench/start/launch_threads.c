// Ranks that are threads of this process, without MPI; see launch.h. Ranks of launch_processes.c use this
// file, too.
#include "launch.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls/backend.h"
#include "protocol/protocol.h"
#include "ranks/watch.h"

const char *const launch_prefix = "", *const launch_suffix = " --ranks 2";

// The arguments and the result of a thread.
struct rank_thread {
    pthread_t thread;
    struct control *control;
    int rank, ranks, status;
    double timeout_s;
    rank_function *rank_main;
    void *argument;
};

static void *run_rank(void *argument) {
    struct rank_thread *self = argument;
    struct group group;
    group_open_thread(&group, self->control, self->rank, self->ranks, self->timeout_s);
    self->status = self->rank_main(&group, self->argument);
    group_close(&group);
    return NULL;
}

int launch(int *argc, char ***argv, int ranks, double timeout_s, rank_function *rank_main, void *argument) {
    (void)argc;
    (void)argv;
    struct rank_thread threads[MAX_NODE_RANKS];
    char reason[REASON_SIZE];
    if (ranks == 0) ranks = USUAL_RANKS;
    if (!group_size_is_possible(ranks, ranks, reason, sizeof reason)) {
        fprintf(stderr, "gentables-bench: %s\n", reason);
        return 2;
    }
    watch_begin(timeout_s * backend->hang_timeouts);
    struct control *control = aligned_alloc(CACHE_LINE, control_bytes(ranks));
    if (control == NULL) launch_abort();
    memset(control, 0, control_bytes(ranks));
    int started = 0, status = 0;
    for (; started < ranks; started++) {
        struct rank_thread *thread = &threads[started];
        *thread = (struct rank_thread){.control = control,
                                       .rank = started,
                                       .ranks = ranks,
                                       .timeout_s = timeout_s,
                                       .rank_main = rank_main,
                                       .argument = argument};
        if (pthread_create(&thread->thread, NULL, run_rank, thread) != 0) launch_abort();
    }
    for (int rank = 0; rank < started; rank++) {
        pthread_join(threads[rank].thread, NULL);
        if (threads[rank].status > status) status = threads[rank].status;
    }
    free(control);
    return status;
}

void launch_share(struct group *group, void *data, size_t bytes) {
    double timeout_s = group->timeout_s;
    if (group->rank != 0) group->timeout_s = INFINITY; // the others wait for rank 0
    group_broadcast(group, 0, data, bytes);
    group->timeout_s = timeout_s;
}

_Noreturn void launch_abort(void) {
    fflush(protocol_out());
    _exit(1);
}
