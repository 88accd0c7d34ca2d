// A plug-in for GPUs with one fault, which a definition selects (BAD_BEYOND and so on): the example that
// copies between GPUs, with the fault in its second candidate, FAULTY.
#include <unistd.h>

#define gentables_plugin gentables_plugin_of_example
#include "examples/peer_copies.c"
#undef gentables_plugin

// Whether this is the group and not a trial.
static bool is_in_group(void) {
    char words[512] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t count = file != NULL ? fread(words, 1, sizeof words - 1, file) : 0;
    if (file != NULL) fclose(file);
    for (size_t at = 0; at < count; at += strlen(words + at) + 1) {
        if (strcmp(words + at, "--pass") == 0) return true;
    }
    return false;
}

static void *look_up(const struct state *state, const char *name) {
    return dlsym(state->driver.library, name);
}

static void set_bytes(const struct state *state, CUdeviceptr to, unsigned char value, size_t bytes,
                      CUstream stream) {
    __typeof__(&cuMemsetD8Async) set;
    *(void **)&set = look_up(state, "cuMemsetD8Async");
    set(to, value, bytes, stream);
}

enum { LARGE = 4 << 20 }; // bytes: a trial makes fewer calls of larger messages

// The fault, in addition to the right result.
static gt_status misbehave(struct plan *plan, const gt_buffers *buffers, CUstream stream) {
    const struct state *state = plan->state;
    size_t bytes = plan->send_bytes * (size_t)(plan->is_broadcast ? 1 : state->rank.world_size);
    CUdeviceptr receive = (CUdeviceptr)(uintptr_t)buffers->receive;
    (void)is_in_group;
    (void)set_bytes;
    (void)bytes;
    (void)receive;
#if defined BAD_PLACED
    size_t at = plan->is_broadcast ? 0 : (size_t)state->rank.rank * plan->send_bytes;
    if ((CUdeviceptr)(uintptr_t)buffers->send != receive + at) return fail(plan->state, "not in place");
#elif defined BAD_BEYOND
    set_bytes(state, receive + bytes, 0, 16, stream);
#elif defined BAD_LARGE_BEYOND
    if (bytes > LARGE) set_bytes(state, receive + bytes, 0, 16, stream);
#elif defined BAD_LARGE_BEFORE
    if (bytes > LARGE) set_bytes(state, receive - 16, 0, 16, stream);
#elif defined BAD_PEER_BEYOND
    CUdeviceptr all[MOST_RANKS];
    const gt_host *host = state->rank.host;
    host->allgather(host->context, &receive, all, sizeof receive);
    if (bytes > LARGE) set_bytes(state, all[1 - state->rank.rank] + bytes, 0, 16, stream);
#elif defined BAD_BEFORE
    set_bytes(state, receive - 16, 0, 16, stream);
#elif defined BAD_WRONG
    if (state->rank.rank == 1) set_bytes(state, receive, 0, 2, stream);
#elif defined BAD_HANG
    for (;;) pause();
#elif defined BAD_CRASH
    abort();
#elif defined BAD_WAITS
    __typeof__(&cuStreamSynchronize) wait;
    *(void **)&wait = look_up(state, "cuStreamSynchronize");
    wait(stream);
#elif defined BAD_LEAK
    __typeof__(&cuMemAlloc) take;
    CUdeviceptr leaked;
    *(void **)&take = look_up(state, NAME_OF(cuMemAlloc));
    take(&leaked, 4096);
#elif defined BAD_LATER_CRASH
    if (is_in_group()) abort();
#elif defined BAD_LATER_HANG
    while (is_in_group()) pause();
#elif defined BAD_FAILS
    return fail(plan->state, "a planted failure");
#endif
    (void)stream;
    return GT_OK;
}

// Calls of a rank in the group before a later fault: more than the calls that are verified before any is
// timed, with the repetitions for a late host.
enum { LATER = 100 };

// Whether this call's work goes to a stream of its own, for which the given stream does not wait. BAD_STREAM
// does not wait for the given stream either. BAD_EARLY does not, but waits for its own stream before it
// returns. BAD_LATER_STREAM waits for the given stream, and begins after its results have been verified.
#if defined BAD_STREAM || defined BAD_EARLY || defined BAD_LATER_STREAM
#define HAS_OWN_STREAM 1
static bool leaves_stream(void) {
#ifdef BAD_LATER_STREAM
    static __thread int calls;
    return is_in_group() && ++calls > LATER;
#else
    return true;
#endif
}

static CUstream another_stream(const struct state *state) {
    static __thread CUstream other; // one for each rank
    __typeof__(&cuStreamCreate) create;
    *(void **)&create = look_up(state, "cuStreamCreate");
    if (other == NULL) create(&other, CU_STREAM_NON_BLOCKING);
    return other;
}

static gt_status run_elsewhere(struct plan *plan, const gt_buffers *buffers, CUstream stream) {
    CUstream other = another_stream(plan->state);
    __typeof__(&cuStreamSynchronize) wait;
    *(void **)&wait = look_up(plan->state, "cuStreamSynchronize");
    (void)stream;
    (void)wait;
#ifdef BAD_LATER_STREAM
    static __thread CUevent begun;
    const struct driver *driver = &plan->state->driver;
    if (begun == NULL) driver->cuEventCreate(&begun, CU_EVENT_DISABLE_TIMING);
    driver->cuEventRecord(begun, stream);
    driver->cuStreamWaitEvent(other, begun, 0);
#endif
    gt_status status = copies_run(plan, buffers, other);
#ifdef BAD_EARLY
    wait(other);
#endif
    return status;
}
#endif

static gt_status bad_init(const gt_rank *rank, void **state) {
#ifdef BAD_INIT
    abort();
#endif
    return copies_init(rank, state);
}

static gt_status bad_run(void *plan, const gt_buffers *buffers, void *stream) {
    struct plan *todo = plan;
    bool is_faulty = todo->piece_bytes == 0;
#ifdef HAS_OWN_STREAM
    if (is_faulty && leaves_stream()) return run_elsewhere(todo, buffers, stream);
#endif
    gt_status status = copies_run(plan, buffers, stream);
    return status == GT_OK && is_faulty ? misbehave(plan, buffers, stream) : status;
}

const gt_plugin *gentables_plugin(uint32_t abi) {
    static gt_candidate good, faulty;
    static const gt_candidate *const both[] = {&good, &faulty};
    static gt_plugin bad;
    good = in_pieces;
    faulty = at_once;
    good.name = "GOOD";
    faulty.name = "FAULTY";
#ifdef BAD_PLACED
    faulty.places = GT_PLACE_IN; // no fault
#endif
    bad = plugin;
    bad.candidates = both;
    bad.init = bad_init;
    bad.run = bad_run;
    return gentables_plugin_of_example(abi) == NULL ? NULL : &bad;
}
