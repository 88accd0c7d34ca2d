// A plug-in with one fault in the candidate FAULTY, and none in the candidate GOOD. The name of its file
// selects the fault: bad_crash.so and so on; under another name it has none. Both do an allreduce and an
// allgather of floats through the allgather callback; those of bad_uneven.so do an alltoallv, of which some
// counts may be 0.
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

// FAULTS, of CMakeLists.txt, is FAULT(abi) FAULT(twice) ...; a file bad_NAME.so with an unknown NAME aborts.
#define FAULT(name) fault_##name,
static enum fault { FAULTS FAULT_COUNT } fault = fault_nothing;
#undef FAULT
#define FAULT(name) #name,
static const char *const fault_names[] = {FAULTS};

__attribute__((constructor)) static void choose_fault(void) {
    Dl_info self;
    if (dladdr(&fault, &self) == 0) abort();
    const char *slash = strrchr(self.dli_fname, '/'), *name = slash == NULL ? self.dli_fname : slash + 1;
    if (strncmp(name, "bad_", 4) != 0) return;
    size_t length = strcspn(name += 4, ".");
    for (fault = 0; fault < FAULT_COUNT; fault++)
        if (strlen(fault_names[fault]) == length && memcmp(fault_names[fault], name, length) == 0) return;
    fprintf(stderr, "%s: bad.c has no such fault\n", self.dli_fname);
    abort();
}

struct state {
    gt_rank rank;
    const char *error;
    void *map; // of a file in /dev/shm
};

enum { MOST_RANKS = 16 };

struct plan {
    struct state *state;
    gt_call call;
    uint32_t candidate;
    size_t sent;                                                 // elements that each rank gathers
    size_t send_offset, counts[MOST_RANKS], offsets[MOST_RANKS]; // of an alltoallv
    float *receive;                                              // of the last call of FAULTY
    pthread_t writers[64];
    size_t writer_count;
};

// Whether this is the group and not a trial, for faults that occur in the group alone. A trial sets
// tcache_count in GLIBC_TUNABLES, to count the blocks of the heap.
static bool is_in_group(void) {
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables == NULL || strstr(tunables, "tcache_count") == NULL;
}

static float *last_receive; // of the last call of FAULTY with any plan

// If the clock of the tests is loaded (tests/system/faults/clock.c), deadlines pass soon from now on.
static void hurry(void) {
    void (*begin)(void);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fault_clock_hurry");
    if (begin != NULL) begin();
}

_Noreturn static void hang(void) {
    hurry();
    for (;;) pause();
}

// Returns when it is cancelled.
static void wait_for_cancel(const gt_host *host) {
    hurry();
    while (!*host->cancel) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *wait_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

// Leaves an object in /dev/shm; its name begins with BAD_SHM of the environment.
static gt_status leave_shared_memory(struct state *state) {
    static int number;
    char name[128];
    const char *prefix = getenv("BAD_SHM");
    snprintf(name, sizeof name, "/%.64s-%d-%d", prefix == NULL ? "bad" : prefix, (int)getpid(), number++);
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) return GT_FAILED;
    if (fault == fault_leak_shm_mapped) {
        state->map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
        if (state->map == MAP_FAILED) return GT_FAILED;
    }
    return close(file) == 0 ? GT_OK : GT_FAILED;
}

static gt_status leave_map(size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? GT_FAILED : GT_OK;
}

static gt_status leave_thread(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, wait_for_ever, NULL) == 0 ? GT_OK : GT_FAILED;
}

// Leaves a child, which keeps its standard error open: a reader that waits for its end waits for the child.
static gt_status leave_child(void) {
    if (fork() == 0) {
        for (;;) pause();
    }
    return GT_OK;
}

// Leaves a process without its parent.
static gt_status leave_orphan(void) {
    pid_t child = fork();
    if (child == 0) {
        if (fork() != 0) _exit(0);
        for (;;) pause();
    }
    waitpid(child, NULL, 0);
    return GT_OK;
}

// A child that its parent waits for, which is no fault.
static gt_status wait_for_child(void) {
    pid_t brief = fork();
    if (brief == 0) exit(0);
    waitpid(brief, NULL, 0);
    return GT_OK;
}

static gt_status misbehave_at_start(struct state *state) {
    const gt_host *host = state->rank.host;
    switch (fault) {
    case fault_leak: return open("/dev/null", O_RDONLY) < 0 ? GT_FAILED : GT_OK;
    case fault_leak_shm:
    case fault_leak_shm_mapped: return leave_shared_memory(state);
    case fault_leak_map: return leave_map(1 << 20);
    case fault_leak_page: return leave_map(4096); // the least that can be mapped
    case fault_leak_thread: return leave_thread();
    case fault_logs: host->log(host->context, "strategy MPI: crashed,\nsays the log"); break;
    case fault_fork: return leave_child();
    case fault_fork_away: return leave_orphan();
    case fault_fork_waited: return wait_for_child();
    case fault_start:
        if (getenv("BAD_START_CRASHES") != NULL) raise(SIGSEGV);
        if (getenv("BAD_START_HANGS") != NULL) hang();
        break;
    case fault_start_late: // returns a state, but only after its cancellation
        if (getenv("BAD_START_HANGS") != NULL) wait_for_cancel(host);
        break;
    default: break;
    }
    return GT_OK;
}

static gt_status bad_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->rank = *rank;
    made->error = "";
    *state = made;
    return misbehave_at_start(made);
}

// Keeps the places of an alltoallv, which are valid only during prepare.
static void keep_parts(struct plan *plan, const gt_call *call) {
    plan->sent = call->send_elements; // the same on all ranks: weights are of destinations
    plan->send_offset = call->send_offsets[plan->state->rank.rank];
    for (int from = 0; from < plan->state->rank.world_size; from++) {
        plan->counts[from] = call->receive_counts[from];
        plan->offsets[from] = call->receive_offsets[from];
    }
}

static gt_status bad_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                             void **plan) {
    if (fault == fault_in_place && candidate == 1 && call->place != GT_PLACE_IN) return GT_FAILED;
    struct plan *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->state = state;
    made->call = *call;
    made->candidate = candidate;
    made->sent = (size_t)call->count;
    if (call->op == GT_OP_ALLTOALLV) keep_parts(made, call);
    *workspace_bytes = made->sent * (size_t)made->state->rank.world_size * sizeof(float);
    *plan = made;
    return GT_OK;
}

struct late {
    volatile float *to;
    float value;
};

// Waits until the buffer is overwritten, then restores the old value; release waits for this thread.
static void *write_late(void *late) {
    struct late *todo = late;
    while (*todo->to == todo->value) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    *todo->to = todo->value;
    free(todo);
    return NULL;
}

static void begin_to_write_late(struct plan *plan, float *receive) {
    struct late *late = malloc(sizeof *late);
    if (late == NULL || plan->writer_count == sizeof plan->writers / sizeof *plan->writers) return;
    *late = (struct late){receive, receive[0]};
    plan->writer_count += pthread_create(&plan->writers[plan->writer_count], NULL, write_late, late) == 0;
}

// Calls before a fault of misbehave_later: more than a trial makes.
enum { LATER = 80 };
enum { LARGE = 1 << 20, ALIGNED = 64 }; // elements; bytes

// The value cut to so many significant bits; values that are exact in these do not change.
static float rounded_to(int bits, float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    word &= UINT32_MAX << (24 - bits);
    memcpy(&value, &word, sizeof value);
    return value;
}

// Uses more stack than a thread has.
static int used_up(int depth) {
    volatile char room[4096];
    room[0] = 1;
    return depth < 0 ? 0 : used_up(depth + 1) + room[0];
}

// Faults that occur from the first call on.
static void misbehave_at_once(struct plan *plan, float *receive) {
    size_t elements = plan->call.receive_elements;
    int rank = plan->state->rank.rank;
    switch (fault) {
    case fault_beyond:
    case fault_large_only: receive[elements] = 1; break;
    case fault_large_beyond:
        if (plan->call.count > LARGE) receive[elements] = 1;
        break;
    case fault_prints:
        printf("row id=1 ");
        fflush(stdout);
        break;
    case fault_aligned:
        if ((uintptr_t)receive % ALIGNED != 0) raise(SIGILL);
        break;
    case fault_late: begin_to_write_late(plan, receive); break;
    case fault_differs: receive[0] += rank == 1 ? 1 : 0; break;
    case fault_crash: raise(SIGSEGV); break;
    case fault_told: { // BAD_FAULT of the environment selects the fault
        const char *what = getenv("BAD_FAULT");
        if (what != NULL && strcmp(what, "crash") == 0) raise(SIGSEGV);
        if (what != NULL && strcmp(what, "wrong") == 0) receive[0] += 1;
        break;
    }
    case fault_heap: {
        void *volatile leaked = malloc(24); // volatile: a compiler may leave out an unused block
        if (leaked == NULL) receive[0] += 1;
        break;
    }
    case fault_rounds:
        for (size_t i = 0; i < elements; i++) receive[i] = rounded_to(8, receive[i]);
        break;
    case fault_bits:
        if (rank == 1) receive[0] = rounded_to(23, receive[0]);
        break;
    case fault_hang: hang();
    case fault_cancelled: wait_for_cancel(plan->state->rank.host); break;
    case fault_leave: exit(0);
    case fault_stack: receive[0] = (float)used_up(0); break;
    default: break;
    }
}

// Faults that occur after the trial.
static void misbehave_later(const struct plan *plan, float *receive) {
    static float *before;
    switch (fault) {
    case fault_later_crash: raise(SIGSEGV); break;
    case fault_later_hang: hang();
    case fault_later_wrong: receive[0] += 1; break;
    case fault_later_late:
        if (before != NULL && before != receive) before[0] = 1;
        before = receive;
        break;
    case fault_later_stack: receive[0] = (float)used_up(0); break;
    case fault_later_kill: raise(SIGKILL); break;
    case fault_later_term: raise(SIGTERM); break;
    case fault_later_exec: execlp("true", "true", (char *)NULL); break;
    case fault_later_unhandled:
        if (plan->state->rank.rank == 1 && signal(SIGSEGV, SIG_DFL) != SIG_ERR) raise(SIGSEGV);
        break;
    default: break;
    }
}

// The fault in a call of FAULTY.
static void misbehave(struct plan *plan, float *receive) {
    static int calls;
    last_receive = receive;
    misbehave_at_once(plan, receive);
    if (++calls > LATER) misbehave_later(plan, receive);
}

// r = sum + residual; r / rms(r) * weight. FAULTY may forget the weight.
static void fused(const struct plan *plan, const gt_buffers *buffers, const float *all) {
    size_t hidden = plan->call.hidden_size, count = (size_t)plan->call.count;
    const float *residual = buffers->residual_in, *weight = buffers->norm_weight;
    float *sum = buffers->residual_out, *norm = buffers->norm_out;
    bool forgets = fault == fault_fused && plan->candidate == 1;
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
            norm[first + i] = sum[first + i] * factor * (forgets ? 1 : weight[i]);
    }
}

// Takes the parts of an alltoallv. FAULTY writes even if it gets nothing.
static void take_parts(const struct plan *plan, const float *all, float *receive) {
    for (size_t from = 0; from < (size_t)plan->state->rank.world_size; from++) {
        for (size_t i = 0; i < plan->counts[from]; i++)
            receive[plan->offsets[from] + i] = all[from * plan->sent + plan->send_offset + i];
    }
    if (plan->candidate == 1 && plan->counts[0] == 0) receive[0] = 1;
}

static gt_status bad_run(void *plan, const gt_buffers *buffers, void *stream) {
    struct plan *todo = plan;
    const gt_host *host = todo->state->rank.host;
    size_t count = (size_t)todo->call.count;
    float *all = todo->call.op == GT_OP_ALLGATHER ? buffers->receive : buffers->workspace;
    float *receive = buffers->receive;
    bool is_faulty = todo->candidate == 1;
    (void)stream;
    if (host->allgather(host->context, buffers->send, all, todo->sent * sizeof(float)) != 0) {
        todo->state->error = "no allgather";
        return GT_FAILED;
    }
    if (todo->call.fusion != GT_FUSION_NONE) {
        fused(todo, buffers, all);
        if (fault == fault_fused_beyond && is_faulty) ((float *)buffers->residual_out)[count] = 1;
        if (fault == fault_fused_late && is_faulty) todo->receive = buffers->residual_out;
        return GT_OK;
    }
    if (todo->call.op == GT_OP_ALLTOALLV) take_parts(todo, all, receive);
    for (size_t i = 0; todo->call.op == GT_OP_ALLREDUCE && i < count; i++) {
        receive[i] = all[i];
        for (int rank = 1; rank < todo->state->rank.world_size; rank++)
            receive[i] += all[(size_t)rank * count + i];
    }
    if (fault == fault_workspace && is_faulty) ((char *)buffers->workspace)[buffers->workspace_bytes] = 1;
    if (fault == fault_late_release && is_faulty) todo->receive = receive;
    if (is_faulty) misbehave(todo, receive);
    return GT_OK;
}

static void bad_release(void *plan) {
    struct plan *todo = plan;
    if (fault == fault_release_crash && todo->candidate == 1 && is_in_group()) raise(SIGSEGV);
    if (fault == fault_release_hang && todo->candidate == 1 && is_in_group()) hang();
    if (todo->receive != NULL) todo->receive[0] = 1;
    for (size_t i = 0; i < todo->writer_count; i++) pthread_join(todo->writers[i], NULL);
    free(plan);
}

static void bad_fini(void *state) {
    struct state *made = state;
    const gt_host *host = made->rank.host;
    if (fault == fault_start_late && getenv("BAD_START_HANGS") != NULL)
        host->log(host->context, *host->cancel ? "cancelled" : "fini");
    if (fault == fault_late_fini && last_receive != NULL) last_receive[0] = 1;
    last_receive = NULL;
    if (fault == fault_fini_crash && is_in_group()) raise(SIGSEGV);
    if (fault == fault_fini_hang && is_in_group()) hang();
    if (fault == fault_fini_leave && is_in_group()) exit(0);
    if (made->map != NULL) munmap(made->map, 4096);
    free(made);
}

static const char *bad_error(void *state) {
    return state == NULL ? "" : ((struct state *)state)->error;
}

#define CANDIDATE(the_name)                                                                                  \
    {                                                                                                        \
        .size = sizeof(gt_candidate), .name = the_name,                                                      \
        .ops = 1u << GT_OP_ALLREDUCE | 1u << GT_OP_ALLGATHER, .dtypes = 1u << GT_FLOAT32,                    \
        .reduce_ops = 1u << GT_SUM, .fusions = 1u << GT_FUSION_NONE, .memory = GT_MEMORY_HOST,               \
        .places = GT_PLACE_OUT, .flags = GT_FLAG_COLLECTIVE_RUN | GT_FLAG_FP32, .count_multiple = 1          \
    }

// Sums are in rank order.
static gt_candidate good = CANDIDATE("GOOD"), faulty = CANDIDATE("FAULTY");
static const gt_candidate *candidates[] = {&good, &faulty};

static gt_plugin plugin = {
    .size = sizeof plugin,
    .abi = GENTABLES_PLUGIN_ABI,
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

// Faults in the description of FAULTY: its operations, and how it is called.
static void misdescribe_calls(void) {
    switch (fault) {
    case fault_twice: faulty.name = good.name; break;
    case fault_op: faulty.ops = 1u << 20; break;
    case fault_dtype: faulty.dtypes = 1u << 20; break;
    case fault_multiple: faulty.count_multiple = 48; break;
    case fault_flag: faulty.flags |= 0x80; break;
    case fault_reduce_op: faulty.reduce_ops = 8; break;
    case fault_no_sum: faulty.reduce_ops = 0; break;
    case fault_fused:
    case fault_fused_beyond:
    case fault_fused_late:
        faulty.fusions |= 1u << GT_FUSION_RESIDUAL_RMS_NORM;
        good.fusions = faulty.fusions;
        break;
    case fault_uneven: good.ops = faulty.ops = 1u << GT_OP_ALLTOALLV; break;
    case fault_fused_only: faulty.fusions = 1u << GT_FUSION_RESIDUAL_RMS_NORM; break;
    case fault_fusionless: faulty.fusions = 0; break;
    default: break;
    }
}

// Faults in the description of FAULTY: its buffers; and in the sizes of its struct and of the plug-in's.
static void misdescribe_buffers(void) {
    switch (fault) {
    case fault_in_place:
        faulty.ops |= 1u << GT_OP_ALLTOALL;
        faulty.places = GT_PLACE_IN;
        break;
    case fault_in_place_both: faulty.places |= GT_PLACE_IN; break;
    case fault_aligned:
        faulty.places |= GT_PLACE_IN;
        faulty.alignment = ALIGNED;
        break;
    case fault_large_only: faulty.min_bytes = 8 << 20; break;
    case fault_null: candidates[1] = NULL; break;
    case fault_short: // no fault: a struct of an older version, without alignment; later members are not read
        faulty.size = offsetof(gt_candidate, alignment);
        faulty.count_multiple = 0;
        faulty.alignment = 3;
        faulty.world_sizes = 1;
        break;
    case fault_short_plugin: // a struct of an older version, without the last function
        plugin.size = offsetof(gt_plugin, error);
        break;
    case fault_abi: plugin.abi = (GENTABLES_PLUGIN_MAJOR + 1) << 16; break;
    default: break;
    }
}

const gt_plugin *gentables_plugin(uint32_t abi) {
    misdescribe_calls();
    misdescribe_buffers();
    if (fault == fault_dies) raise(SIGSEGV);
    if (fault == fault_hangs_asked) hang();
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
