// A plug-in with one fault, which a definition chooses (BAD_CRASH and so on), and beside it a candidate
// without any. Right is an allreduce and an allgather of floats through the allgather callback.
#include "plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct state {
    gt_rank rank;
    const char *error;
    void *map; // of a file in /dev/shm
};

struct plan {
    struct state *state;
    gt_call call;
    uint32_t candidate;
    float *all, *receive; // of the last call of the faulty one
    pthread_t writers[64];
    size_t writer_count;
};

// Faults that come in the group alone: a trial counts the heap, and says so to the C library.
static bool is_in_group(void) {
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables == NULL || strstr(tunables, "tcache_count") == NULL;
}

// Where the clock of the tests is loaded (tests/faults/clock.c), deadlines pass soon from here on.
static void hurry(void) {
    void (*begin)(void);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fault_clock_hurry");
    if (begin != NULL) begin();
}

static float *last_receive; // the same, of any plan

#ifdef BAD_LEAK_THREAD
static void *wait_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}
#endif

static gt_status bad_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->rank = *rank;
    made->error = "";
    *state = made;
#ifdef BAD_LEAK
    if (open("/dev/null", O_RDONLY) < 0) return GT_FAILED;
#endif
#if defined BAD_LEAK_SHM || defined BAD_LEAK_SHM_MAPPED // their names begin as whoever starts it says
    static int number;
    char name[128];
    const char *prefix = getenv("BAD_SHM");
    snprintf(name, sizeof name, "/%.64s-%d-%d", prefix == NULL ? "bad" : prefix, (int)getpid(), number++);
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) return GT_FAILED;
#ifdef BAD_LEAK_SHM_MAPPED
    made->map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (made->map == MAP_FAILED) return GT_FAILED;
#endif
    if (close(file) != 0) return GT_FAILED;
#endif
#ifdef BAD_LEAK_MAP
    void *map = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return GT_FAILED;
#endif
#ifdef BAD_LEAK_PAGE // as little as can be mapped
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return GT_FAILED;
#endif
#ifdef BAD_LOGS
    rank->host->log(rank->host->context, "strategy MPI: crashed,\nsays the log");
#endif
#ifdef BAD_LEAK_THREAD
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) return GT_FAILED;
#endif
#ifdef BAD_FORK // whoever waits for its standard error to end waits for it
    if (fork() == 0) {
        for (;;) pause();
    }
#endif
#ifdef BAD_FORK_AWAY // it, too, has no parent
    pid_t child = fork();
    if (child == 0) {
        if (fork() != 0) _exit(0);
        for (;;) pause();
    }
    waitpid(child, NULL, 0);
#endif
#ifdef BAD_FORK_WAITED // no fault
    pid_t brief = fork();
    if (brief == 0) exit(0);
    waitpid(brief, NULL, 0);
#endif
#ifdef BAD_START
    if (getenv("BAD_START_CRASHES") != NULL) raise(SIGSEGV);
    if (getenv("BAD_START_HANGS") != NULL) hurry();
    while (getenv("BAD_START_HANGS") != NULL) pause();
#endif
#ifdef BAD_START_LATE // with a state, once it is told to end
    if (getenv("BAD_START_HANGS") != NULL) hurry();
    while (getenv("BAD_START_HANGS") != NULL && !*rank->host->cancel)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
#endif
    return GT_OK;
}

static gt_status bad_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                             void **plan) {
#ifdef BAD_IN_PLACE
    if (candidate == 1 && call->place != GT_PLACE_IN) return GT_FAILED;
#endif
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
    volatile float *to;
    float value;
};

// Once the buffer has been overwritten, whenever that is; release waits for it.
static void *write_late(void *late) {
    struct late *todo = late;
    while (*todo->to == todo->value) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    *todo->to = todo->value;
    free(todo);
    return NULL;
}
#endif

// The faults that come later: more calls than there are in a trial.
enum { LATER = 80 };
enum { LARGE = 1 << 20, ALIGNED = 64 }; // elements; bytes

// A value that is exact with so few bits stays as it is.
static float rounded_to(int bits, float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    word &= UINT32_MAX << (24 - bits);
    memcpy(&value, &word, sizeof value);
    return value;
}

// More than a thread has of stack.
static int used_up(int depth) {
    volatile char room[4096];
    room[0] = 1;
    return depth < 0 ? 0 : used_up(depth + 1) + room[0];
}

// What the faulty candidate does beside, or in place of, what is right.
static void misbehave(struct plan *plan, float *receive) {
    static int calls;
    bool is_later = ++calls > LATER;
    (void)plan;
    (void)is_later;
    (void)rounded_to;
    (void)is_in_group;
    (void)used_up;
    (void)hurry;
    last_receive = receive;
#if defined BAD_BEYOND || defined BAD_LARGE_ONLY
    receive[plan->call.receive_elements] = 1;
#elif defined BAD_LARGE_BEYOND
    if (plan->call.count > LARGE) receive[plan->call.receive_elements] = 1;
#elif defined BAD_PRINTS
    printf("row id=1 ");
    fflush(stdout);
#elif defined BAD_ALIGNED
    if ((uintptr_t)receive % ALIGNED != 0) raise(SIGILL);
#elif defined BAD_LATE
    struct late *late = malloc(sizeof *late);
    if (late == NULL || plan->writer_count == sizeof plan->writers / sizeof *plan->writers) return;
    *late = (struct late){receive, receive[0]};
    plan->writer_count += pthread_create(&plan->writers[plan->writer_count], NULL, write_late, late) == 0;
#elif defined BAD_DIFFERS
    if (plan->state->rank.rank == 1) receive[0] += 1;
#elif defined BAD_CRASH
    raise(SIGSEGV);
#elif defined BAD_LATER_CRASH
    if (is_later) raise(SIGSEGV);
#elif defined BAD_LATER_HANG
    if (is_later) hurry();
    while (is_later) pause();
#elif defined BAD_LATER_WRONG
    if (is_later) receive[0] += 1;
#elif defined BAD_TOLD // by whoever starts it
    const char *fault = getenv("BAD_FAULT");
    if (fault != NULL && strcmp(fault, "crash") == 0) raise(SIGSEGV);
    if (fault != NULL && strcmp(fault, "wrong") == 0) receive[0] += 1;
#elif defined BAD_LATER_LATE
    static float *before;
    if (is_later && before != NULL && before != receive) before[0] = 1;
    before = receive;
#elif defined BAD_HEAP
    void *volatile leaked = malloc(24); // volatile: a compiler may leave out what is not used
    if (leaked == NULL) receive[0] += 1;
#elif defined BAD_ROUNDS
    for (size_t i = 0; i < plan->call.receive_elements; i++) receive[i] = rounded_to(8, receive[i]);
#elif defined BAD_BITS
    if (plan->state->rank.rank == 1) receive[0] = rounded_to(23, receive[0]);
#elif defined BAD_HANG
    hurry();
    for (;;) pause();
#elif defined BAD_CANCELLED
    hurry();
    while (!*plan->state->rank.host->cancel) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
#elif defined BAD_LEAVE
    exit(0);
#elif defined BAD_STACK
    receive[0] = (float)used_up(0);
#elif defined BAD_LATER_STACK
    if (is_later) receive[0] = (float)used_up(0);
#elif defined BAD_LATER_KILL
    if (is_later) raise(SIGKILL);
#elif defined BAD_LATER_TERM
    if (is_later) raise(SIGTERM);
#elif defined BAD_LATER_EXEC
    if (is_later) execlp("true", "true", (char *)NULL);
#elif defined BAD_LATER_UNHANDLED
    if (is_later && plan->state->rank.rank == 1 && signal(SIGSEGV, SIG_DFL) != SIG_ERR) raise(SIGSEGV);
#endif
}

#ifdef BAD_FUSED
#define FORGETS true
#else
#define FORGETS false
#endif

// r = sum + residual; r / rms(r) * weight, which the faulty one may forget.
static void fused(const struct plan *plan, const gt_buffers *buffers, const float *all) {
    size_t hidden = plan->call.hidden_size, count = (size_t)plan->call.count;
    const float *residual = buffers->residual_in, *weight = buffers->norm_weight;
    float *sum = buffers->residual_out, *norm = buffers->norm_out;
    for (size_t first = 0; first < count; first += hidden) {
        float squares = 0;
        for (size_t i = first; i < first + hidden; i++) {
            sum[i] = all[i];
            for (int rank = 1; rank < plan->state->rank.world_size; rank++)
                sum[i] += all[(size_t)rank * count + i];
            sum[i] += residual[i];
            squares += sum[i] * sum[i];
        }
        float factor = 1 / sqrtf(squares / (float)hidden + plan->call.epsilon);
        for (size_t i = 0; i < hidden; i++)
            norm[first + i] = sum[first + i] * factor * (plan->candidate == 1 && FORGETS ? 1 : weight[i]);
    }
}

static gt_status bad_run(void *plan, const gt_buffers *buffers, void *stream) {
    struct plan *todo = plan;
    const gt_host *host = todo->state->rank.host;
    size_t count = (size_t)todo->call.count;
    float *all = todo->call.op == GT_OP_ALLGATHER ? buffers->receive : buffers->workspace;
    float *receive = buffers->receive;
    (void)stream;
    if (host->allgather(host->context, buffers->send, all, count * sizeof(float)) != 0) {
        todo->state->error = "no allgather";
        return GT_FAILED;
    }
    if (todo->call.fusion != GT_FUSION_NONE) {
        fused(todo, buffers, all);
#ifdef BAD_FUSED_BEYOND
        if (todo->candidate == 1) ((float *)buffers->residual_out)[todo->call.count] = 1;
#endif
#ifdef BAD_FUSED_LATE
        if (todo->candidate == 1) todo->receive = buffers->residual_out;
#endif
        return GT_OK;
    }
    for (size_t i = 0; todo->call.op == GT_OP_ALLREDUCE && i < count; i++) {
        receive[i] = all[i];
        for (int rank = 1; rank < todo->state->rank.world_size; rank++)
            receive[i] += all[(size_t)rank * count + i];
    }
#ifdef BAD_WORKSPACE
    if (todo->candidate == 1) ((char *)buffers->workspace)[buffers->workspace_bytes] = 1;
#endif
#ifdef BAD_LATE_RELEASE
    if (todo->candidate == 1) todo->receive = receive;
#endif
    if (todo->candidate == 1) misbehave(todo, receive);
    return GT_OK;
}

static void bad_release(void *plan) {
    struct plan *todo = plan;
#if defined BAD_RELEASE_CRASH
    if (todo->candidate == 1 && is_in_group()) raise(SIGSEGV);
#elif defined BAD_RELEASE_HANG
    if (todo->candidate == 1 && is_in_group()) hurry();
    while (todo->candidate == 1 && is_in_group()) pause();
#endif
    if (todo->receive != NULL) todo->receive[0] = 1;
    for (size_t i = 0; i < todo->writer_count; i++) pthread_join(todo->writers[i], NULL);
    free(plan);
}

static void bad_fini(void *state) {
#ifdef BAD_START_LATE
    const gt_host *host = ((struct state *)state)->rank.host;
    if (getenv("BAD_START_HANGS") != NULL) host->log(host->context, *host->cancel ? "cancelled" : "fini");
#endif
#ifdef BAD_LATE_FINI
    if (last_receive != NULL) last_receive[0] = 1;
    last_receive = NULL;
#endif
#if defined BAD_FINI_CRASH
    if (is_in_group()) raise(SIGSEGV);
#elif defined BAD_FINI_HANG
    if (is_in_group()) hurry();
    while (is_in_group()) pause();
#elif defined BAD_FINI_LEAVE
    if (is_in_group()) exit(0);
#endif
    struct state *made = state;
    if (made->map != NULL) munmap(made->map, 4096);
    free(made);
}

static const char *bad_error(void *state) {
    return state == NULL ? "" : ((struct state *)state)->error;
}

#define CANDIDATE(the_name, the_ops, the_dtypes, multiple)                                                   \
    {                                                                                                        \
        .size = sizeof(gt_candidate), .name = the_name, .ops = the_ops, .dtypes = the_dtypes,                \
        .reduce_ops = 1u << GT_SUM, .fusions = FUSIONS, .memory = GT_MEMORY_HOST, .places = GT_PLACE_OUT,    \
        .flags = GT_FLAG_COLLECTIVE_RUN | GT_FLAG_FP32, .count_multiple = multiple                           \
    }
#define OPS    (1u << GT_OP_ALLREDUCE | 1u << GT_OP_ALLGATHER)
#define FLOATS (1u << GT_FLOAT32)
#if defined BAD_FUSED || defined BAD_FUSED_BEYOND || defined BAD_FUSED_LATE
#define FUSIONS (1u << GT_FUSION_NONE | 1u << GT_FUSION_RESIDUAL_RMS_NORM)
#else
#define FUSIONS (1u << GT_FUSION_NONE)
#endif

// Sums are in rank order.
static const gt_candidate good = CANDIDATE("GOOD", OPS, FLOATS, 1);
#if defined BAD_TWICE
static const gt_candidate faulty = CANDIDATE("GOOD", OPS, FLOATS, 1);
#elif defined BAD_OP
static const gt_candidate faulty = CANDIDATE("FAULTY", 1u << 20, FLOATS, 1);
#elif defined BAD_DTYPE
static const gt_candidate faulty = CANDIDATE("FAULTY", OPS, 1u << 20, 1);
#elif defined BAD_SHORT // no fault: of a writer who did not know alignments yet; what follows is not read
static const gt_candidate faulty = {.size = offsetof(gt_candidate, alignment),
                                    .name = "FAULTY",
                                    .ops = OPS,
                                    .dtypes = FLOATS,
                                    .reduce_ops = 1u << GT_SUM,
                                    .fusions = 1u << GT_FUSION_NONE,
                                    .memory = GT_MEMORY_HOST,
                                    .places = GT_PLACE_OUT,
                                    .flags = GT_FLAG_COLLECTIVE_RUN | GT_FLAG_FP32,
                                    .alignment = 3,
                                    .world_sizes = 1};
#elif defined BAD_MULTIPLE
static const gt_candidate faulty = CANDIDATE("FAULTY", OPS, FLOATS, 48);
#else
static gt_candidate faulty = CANDIDATE("FAULTY", OPS, FLOATS, 1);
#endif
static const gt_candidate *candidates[] = {&good, &faulty};

static const gt_plugin plugin = {
#ifdef BAD_SHORT_PLUGIN // of a writer who did not know the last function yet
    .size = offsetof(gt_plugin, error),
#else
    .size = sizeof plugin,
#endif
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
#if defined BAD_FLAG
    faulty.flags |= 0x80;
#elif defined BAD_REDUCE_OP
    faulty.reduce_ops = 8;
#elif defined BAD_NO_SUM
    faulty.reduce_ops = 0;
#elif defined BAD_FUSED_ONLY
    faulty.fusions = 1u << GT_FUSION_RESIDUAL_RMS_NORM;
#elif defined BAD_FUSIONLESS
    faulty.fusions = 0;
#elif defined BAD_IN_PLACE
    faulty.ops |= 1u << GT_OP_ALLTOALL;
    faulty.places = GT_PLACE_IN;
#elif defined BAD_IN_PLACE_BOTH
    faulty.places |= GT_PLACE_IN;
#elif defined BAD_ALIGNED
    faulty.places |= GT_PLACE_IN;
    faulty.alignment = ALIGNED;
#elif defined BAD_LARGE_ONLY
    faulty.min_bytes = 8 << 20;
#elif defined BAD_NULL
    candidates[1] = NULL;
#elif defined BAD_DIES
    raise(SIGSEGV);
#elif defined BAD_HANGS_ASKED
    hurry();
    for (;;) pause();
#endif
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
