// The trial; see trial.h.
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "plugin_loader/plugin_limits.h"
#include "ranks/fault_report.h"
#include "ranks/isolation_process.h"
#include "ranks/memory_limit.h"
#include "resource_snapshot.h"
#include "returned_buffers.h"
#include "trial_call.h"

enum {
    BRIEF_ROUNDS = 2,    // buffers end, then begin, at unmapped memory
    ROUNDS = 3,          // of init-run-fini; growth from the second to the third may be a leak
    MORE_ROUNDS = 3,     // rounds over which it must continue to grow
    WITHOUT_ROUNDS = 4,  // a watch without calls lasts as long as this many rounds
    SLICE_NS = 20000000, // between two checks
    LEAST_SLICES = 10,
    COPIES = 12,       // copies of a call's bytes in its trial, at most: data, results, returned buffers
    COPIES_FUSED = 32, // the same with an epilogue
    SHARE_OF_FREE = 2, // trials may take 1 / this of the free memory
};

// Why the candidate is not tried with a shape, a fusion (or FUSION_NONE) and a place; NULL if it is.
static const char *why_not(const struct trial *trial, int index, const struct shape *shape,
                           enum fusion fusion, bool in_place) {
    const struct candidate *candidate = &backend->candidates[index];
    struct shape part = *shape;
    part.fusion = fusion;
    void *no_plan = NULL;
    struct call call = {.op = shape->op,
                        .plan = &no_plan,
                        .dtype = shape->dtype,
                        .fusion = fusion,
                        .num_tokens = shape->num_tokens,
                        .hidden_size = shape->hidden_size};
    const char *refusal = shape_refusal_of_ranks(&part, trial->group->size);
    if (refusal == NULL && !candidate_does(candidate, shape->op)) refusal = "does not support this op";
    if (refusal == NULL) refusal = plugins_refusal(candidate, trial->group, &call);
    return refusal != NULL ? refusal : plugins_place_refusal(candidate, trial->group, &call, in_place);
}

// Whether memory suffices for the trial of a shape; the same on all ranks.
static bool has_room(struct trial *trial, int index, const struct shape *shape) {
    double bytes = (double)shape_bytes(shape) * (shape->fusion == FUSION_NONE ? COPIES : COPIES_FUSED);
    if (bytes <= trial->free_bytes / SHARE_OF_FREE || shape_bytes(shape) <= LARGE_BYTES) return true;
    trial_lack_memory(trial, index, shape);
    return false;
}

// Tries a shape either out of place or in place, with or without the epilogue. -1: see group_failure.
static int try_way(struct trial *trial, int index, const struct shape *shape, enum fusion fusion,
                   bool in_place) {
    const char *refusal = why_not(trial, index, shape, fusion, in_place);
    if (trial->reasons[index][0] != '\0') return 0;
    if (refusal != NULL) {
        if (in_place == plugins_is_in_place(&backend->candidates[index])) trial->refusals[index] = refusal;
        return 0;
    }
    int status = fusion != FUSION_NONE ? trial_try_fused(trial, index, shape)
                                       : trial_try_shape(trial, index, shape, in_place);
    if (status == 0) trial_share_reason(trial, index);
    return status;
}

static int try_cell(struct trial *trial, int index, const struct shape *shape) {
    if (shape_bytes(shape) > LARGE_BYTES && trial->round >= BRIEF_ROUNDS) return 0;
    if (!has_room(trial, index, shape)) return 0;
    if (shape->fusion != FUSION_NONE && try_way(trial, index, shape, shape->fusion, false) != 0) return -1;
    if (try_way(trial, index, shape, FUSION_NONE, false) != 0) return -1;
    return try_way(trial, index, shape, FUSION_NONE, true);
}

static int try_candidate(struct trial *trial, int index) {
    bool was_tried[OPS] = {false};
    for (size_t i = 0; i < trial->input->count && trial->reasons[index][0] == '\0'; i++) {
        const struct request *request = &trial->input->requests[i];
        bool is_done = trial->is_brief && was_tried[request->shape.op];
        unsigned long before = trial->calls;
        if (!request->wanted[index] || is_done) continue;
        if (try_cell(trial, index, &request->shape) != 0) return -1;
        if (trial->calls > before) was_tried[request->shape.op] = true;
    }
    return 0;
}

// ---- rounds of init-run-fini --------------------------------------------------------------------

static int open_states(struct trial *trial, bool open[MAX_CANDIDATES]) {
    for (int i = 0; i < candidate_count(); i++) {
        char reason[REASON_SIZE] = "";
        const struct candidate *candidate = &backend->candidates[i];
        open[i] = false;
        if (!trial->wanted[i] || trial->reasons[i][0] != '\0') continue;
        fault_work(trial->work[i]);
        open[i] = candidate->strategy->setup(candidate, trial->group, &trial->states[i], reason) == 0;
        fault_work(NULL);
        if (!open[i]) trial_fail(trial, i, reason);
    }
    return 0;
}

// If ranks are threads of one process, one of them takes the snapshots.
static bool takes_snapshots(const struct trial *trial) {
    return trial->group->rank == 0 || !trial->group->shares_process;
}

static int run_round(struct trial *trial) {
    bool open[MAX_CANDIDATES];
    int status = open_states(trial, open);
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (open[i]) status = try_candidate(trial, i);
    }
    if (takes_snapshots(trial)) snapshot_note_shared_files(); // before fini
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (!open[i]) continue;
        fault_work(trial->work[i]);
        backend->candidates[i].strategy->teardown(trial->states[i]);
        fault_work(NULL);
    }
    if (status == 0 && !group_barrier(trial->group)) status = -1;
    while (trial->first != NULL) returned_drop_oldest(trial); // fini is over
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (open[i]) trial_share_reason(trial, i);
    }
    return status;
}

// The first kind that grew on any rank; RESOURCE_KINDS: none.
static int growth(struct trial *trial, const struct resource_snapshot *before,
                  const struct resource_snapshot *after) {
    return (int)group_min(trial->group, snapshot_growth(before, after));
}

// A snapshot of this process and its device. If ranks are threads, one takes it while the others wait.
static struct resource_snapshot snapshot_of(struct trial *trial, time_t since) {
    struct resource_snapshot snapshot = {{0}};
    struct group *group = trial->group;
    if (takes_snapshots(trial)) snapshot = snapshot_take(since);
    snapshot.count[RESOURCE_DEVICE] = (long)backend->services->device_bytes(group);
    group_barrier(group);
    return snapshot;
}

// Whether strays also appear while no code of the plug-in runs: then they are no sign of a leak. Watches for
// several times the duration of a round, and adds the new ones to `after`.
static bool strays_appear_anyway(struct trial *trial, time_t since, uint64_t round_ns,
                                 struct resource_snapshot *after) {
    double without_ns = group_max(trial->group, (double)round_ns) * WITHOUT_ROUNDS;
    size_t slices = LEAST_SLICES + (size_t)(without_ns / SLICE_NS);
    bool came = false;
    for (size_t i = 0; i < slices && !came; i++) {
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
        long strays = snapshot_of(trial, since).count[RESOURCE_STRAYS];
        came = group_max(trial->group, strays > after->count[RESOURCE_STRAYS]) > 0;
        after->count[RESOURCE_STRAYS] = strays;
        trial_report_progress(trial);
    }
    return came;
}

// Runs the rounds. There is a leak if resources grow in each round from the third on; *grown then becomes the
// first kind that grew in the last round, else RESOURCE_KINDS. Processes that outlive fini are a leak even if
// their number does not grow, since they keep the rank's files open.
static int run_rounds(struct trial *trial, int *grown) {
    time_t since = time(NULL);
    struct resource_snapshot before = {{0}};
    long children = takes_snapshots(trial) ? isolation_children() : 0;
    *grown = RESOURCE_KINDS;
    for (trial->round = 0; trial->round < ROUNDS + MORE_ROUNDS; trial->round++) {
        uint64_t begun_ns = clock_ns();
        if (run_round(trial) != 0) return -1;
        if (trial->is_brief && trial->round == BRIEF_ROUNDS - 1) return 0;
        uint64_t round_ns = clock_ns() - begun_ns;
        for (int i = 0; takes_snapshots(trial) && i < LEAST_SLICES && isolation_children() > children; i++)
            nanosleep(&(struct timespec){.tv_nsec = SLICE_NS},
                      NULL); // processes that are just ending are no leak
        struct resource_snapshot after = snapshot_of(trial, since);
        before.count[RESOURCE_CHILDREN] = children;
        if (trial->round >= ROUNDS - 1) {
            *grown = growth(trial, &before, &after);
            if (*grown == RESOURCE_STRAYS && strays_appear_anyway(trial, since, round_ns, &after)) {
                before.count[RESOURCE_STRAYS] = after.count[RESOURCE_STRAYS];
                *grown = growth(trial, &before, &after);
            }
            if (*grown == RESOURCE_KINDS) return 0;
        }
        before = after;
    }
    return 0;
}

// Tries all candidates. If there is a leak, all candidates of the plug-in fail, since the leaking one is
// unknown.
static int run_all(struct trial *trial) {
    int grown;
    if (run_rounds(trial, &grown) != 0) return -1;
    for (int i = 0; i < candidate_count() && grown != RESOURCE_KINDS; i++) {
        char reason[REASON_SIZE];
        snprintf(reason, sizeof reason, "its plug-in leaks %s from init to fini", resource_names[grown]);
        if (trial->wanted[i]) trial_fail(trial, i, reason);
    }
    return 0;
}

// The memory that each rank may use: its share of the machine's, within the limit of its address space.
static double room_of_rank(struct group *group) {
    struct rlimit limit;
    double bytes = (double)machine_memory_left("") / group->size;
    bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    double own = is_limited ? (double)limit.rlim_cur / (group->shares_process ? group->size : 1) : INFINITY;
    return -group_max(group, -fmin(bytes, own));
}

// Data for all shapes that are tried.
static int open_pools(struct trial *trial) {
    size_t elements[DTYPES] = {0};
    bool complete = true;
    for (size_t i = 0; i < trial->input->count; i++) {
        const struct shape *shape = &trial->input->requests[i].shape;
        size_t own = shape->num_tokens * shape->hidden_size;
        bool has_room = (double)shape_bytes(shape) * COPIES <= trial->free_bytes / SHARE_OF_FREE ||
                        shape_bytes(shape) <= LARGE_BYTES;
        if (has_room && own > elements[shape->dtype]) elements[shape->dtype] = own;
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        if (elements[dtype] == 0) continue;
        complete = complete && pool_open(&trial->pools[dtype], (enum dtype)dtype, elements[dtype],
                                         trial->group->size, trial->group->kernels) == 0;
    }
    return group_min(trial->group, complete) != 0 ? 0 : -1;
}

// Prints the outcome of a candidate. One that was never called has not passed.
static void print_outcome(const struct trial *trial, int index) {
    const char *name = backend->candidates[index].name, *reason = trial->reasons[index];
    if (reason[0] != '\0') {
        fprintf(trial->out, "trial strategy=%s status=failed reason=%s\n", name, reason);
    } else if (!trial->was_called[index]) {
        const char *refusal = trial->refusals[index];
        fprintf(trial->out, "trial strategy=%s status=uncalled reason=%s\n", name,
                trial->untried[index] > 0 ? "no memory for so large a call"
                : refusal != NULL         ? refusal
                                          : "does not support such a call");
    } else {
        fprintf(trial->out, "trial strategy=%s status=passed", name);
        if (trial->untried[index] > 0) fprintf(trial->out, " untried=%zu", trial->untried[index]);
        fputc('\n', trial->out);
    }
}

int trial_run(struct group *group, const struct pass_input *input, bool is_brief, FILE *out) {
    struct trial *trial = calloc(1, sizeof *trial);
    if (trial == NULL) return -1;
    trial->group = group;
    trial->input = input;
    trial->is_brief = is_brief;
    trial->out = out;
    trial->reported_ns = clock_ns();
    trial->last = &trial->first;
    for (int i = 0; i < candidate_count(); i++) {
        for (size_t cell = 0; cell < input->count; cell++) {
            trial->wanted[i] =
                trial->wanted[i] || (backend->candidates[i].plugin && input->requests[cell].wanted[i]);
        }
        snprintf(trial->work[i], sizeof trial->work[i], "strategy %s", backend->candidates[i].name);
    }
    trial->free_bytes = room_of_rank(group);
    int status = open_pools(trial);
    if (status != 0) group_fail(group, "out of memory");
    fault_work(NULL);
    if (status == 0) status = run_all(trial);
    for (int i = 0; i < candidate_count() && status == 0 && group->rank == 0; i++) {
        if (trial->wanted[i]) print_outcome(trial, i);
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) pool_close(&trial->pools[dtype]);
    free(trial);
    return status;
}
