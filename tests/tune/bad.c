// A plug-in with one fault, which a definition chooses (BAD_CRASH and so on), and beside it a candidate
// without any. Right is an allreduce and an allgather of floats through the allgather callback.
#include "plugin.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct state {
    gt_rank rank;
    const char *error;
};

struct plan {
    struct state *state;
    gt_call call;
    uint32_t candidate;
    float *all;
};

static gt_status bad_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->rank = *rank;
    made->error = "";
    *state = made;
#ifdef BAD_LEAK
    if (open("/dev/null", O_RDONLY) < 0) return GT_FAILED;
#endif
    return GT_OK;
}

static gt_status bad_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                             void **plan) {
    struct plan *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->state = state;
    made->call = *call;
    made->candidate = candidate;
    *workspace_bytes = (size_t)call->count * (size_t)made->state->rank.world_size * sizeof(float);
    *plan = made;
    return GT_OK;
}

#ifdef BAD_LATE
struct late {
    float *to;
    float value;
};

static void *write_late(void *late) {
    struct late *todo = late;
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    *todo->to = todo->value;
    free(todo);
    return NULL;
}
#endif

// What the faulty candidate does beside, or in place of, what is right.
static void misbehave(const struct plan *plan, float *receive) {
    (void)plan;
    (void)receive;
#if defined BAD_BEYOND
    receive[plan->call.receive_elements] = 1;
#elif defined BAD_LATE
    struct late *late = malloc(sizeof *late);
    pthread_t thread;
    if (late == NULL) return;
    *late = (struct late){receive, receive[0]};
    if (pthread_create(&thread, NULL, write_late, late) == 0) pthread_detach(thread);
#elif defined BAD_DIFFERS
    if (plan->state->rank.rank == 1) receive[0] += 1;
#elif defined BAD_CRASH
    raise(SIGSEGV);
#elif defined BAD_HANG
    for (;;) pause();
#elif defined BAD_LEAVE
    exit(0);
#endif
}

static gt_status bad_run(void *plan, const gt_buffers *buffers, void *stream) {
    const struct plan *todo = plan;
    const gt_host *host = todo->state->rank.host;
    size_t count = (size_t)todo->call.count;
    float *all = todo->call.op == GT_OP_ALLGATHER ? buffers->receive : buffers->workspace;
    float *receive = buffers->receive;
    (void)stream;
    if (host->allgather(host->context, buffers->send, all, count * sizeof(float)) != 0) {
        todo->state->error = "no allgather";
        return GT_FAILED;
    }
    for (size_t i = 0; todo->call.op == GT_OP_ALLREDUCE && i < count; i++) {
        receive[i] = all[i];
        for (int rank = 1; rank < todo->state->rank.world_size; rank++)
            receive[i] += all[(size_t)rank * count + i];
    }
    if (todo->candidate == 1) misbehave(todo, receive);
    return GT_OK;
}

static void bad_release(void *plan) {
    free(plan);
}

static void bad_fini(void *state) {
    free(state);
}

static const char *bad_error(void *state) {
    return state == NULL ? "" : ((struct state *)state)->error;
}

#define CANDIDATE(the_name, the_ops, the_dtypes, multiple)                                                   \
    {                                                                                                        \
        .size = sizeof(gt_candidate), .name = the_name, .ops = the_ops, .dtypes = the_dtypes,                \
        .reduce_ops = 1u << GT_SUM, .fusions = 1u << GT_FUSION_NONE, .memory = GT_MEMORY_HOST,               \
        .places = GT_PLACE_OUT, .flags = GT_FLAG_COLLECTIVE_RUN, .count_multiple = multiple                  \
    }
#define OPS    (1u << GT_OP_ALLREDUCE | 1u << GT_OP_ALLGATHER)
#define FLOATS (1u << GT_FLOAT32)

static const gt_candidate good = CANDIDATE("GOOD", OPS, FLOATS, 1);
#if defined BAD_TWICE
static const gt_candidate faulty = CANDIDATE("GOOD", OPS, FLOATS, 1);
#elif defined BAD_OP
static const gt_candidate faulty = CANDIDATE("FAULTY", 1u << 20, FLOATS, 1);
#elif defined BAD_DTYPE
static const gt_candidate faulty = CANDIDATE("FAULTY", OPS, 1u << 20, 1);
#elif defined BAD_MULTIPLE
static const gt_candidate faulty = CANDIDATE("FAULTY", OPS, FLOATS, 48);
#else
static const gt_candidate faulty = CANDIDATE("FAULTY", OPS, FLOATS, 1);
#endif
static const gt_candidate *const candidates[] = {&good, &faulty};

static const gt_plugin plugin = {
    .size = sizeof plugin,
#ifdef BAD_ABI
    .abi = (GENTABLES_PLUGIN_MAJOR + 1) << 16,
#else
    .abi = GENTABLES_PLUGIN_ABI,
#endif
    .name = "bad",
    .version = "1",
    .candidate_count = 2,
    .candidates = candidates,
    .init = bad_init,
    .prepare = bad_prepare,
    .run = bad_run,
    .release = bad_release,
    .fini = bad_fini,
    .error = bad_error,
};

#ifdef BAD_SYMBOL
#define gentables_plugin another_plugin
const gt_plugin *another_plugin(uint32_t abi);
#endif
const gt_plugin *gentables_plugin(uint32_t abi) {
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
