// The trial; see trial.h.
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "calls/backend.h"
#include "calls/cell.h"
#include "calls/exact_data.h"
#include "plugin_loader/plugins.h"
#include "ranks/fault_report.h"
#include "ranks/isolation_process.h"
#include "ranks/memory_limit.h"
#include "resource_snapshot.h"

enum {
    BRIEF_ROUNDS = 2,    // buffers end, then begin, at unmapped memory
    ROUNDS = 3,          // of init-run-fini; what grows from the second to the third may be a leak
    MORE_ROUNDS = 3,     // then it has to go on growing
    WITHOUT_ROUNDS = 4,  // times as long as a round somebody looks whether it grows without one
    SLICE_NS = 20000000, // between two looks
    LEAST_SLICES = 10,
    CALLS = 3,             // of one shape
    LARGE_BYTES = 4 << 20, // larger shapes take one call in each place and brief round, with exact sums
    OVERWRITTEN = 0xa5,
    LATE_MS = 2,           // until a late write is looked for the first time
    KEPT_BYTES = 64 << 20, // of buffers of earlier calls
    LEAST_ALIGNMENT = 16,  // what vector code may ask for without saying so
    COPIES = 12,           // of a call's bytes that its trial holds, at most: data, results, those kept
    COPIES_FUSED = 32,     // with float64 sums
    SHARE_OF_FREE = 2,     // the part of the free memory that trials may take
};

static const uint64_t TOLD_EVERY_NS = 1000000000;

static const char writes_late[] = "writes after it has returned";

// ---- one candidate ------------------------------------------------------------------------------

// The arrays of a call, of which those without an epilogue have the first and the last but one.
enum array { ARRAY_INPUT, ARRAY_RESIDUAL, ARRAY_GAMMA, ARRAY_RESIDUAL_OUT, ARRAY_OUT, ARRAY_SCALES, ARRAYS };

// A buffer of a call that has returned: overwritten, and to stay so until fini.
struct kept {
    struct guarded buffer;
    int candidate;
    unsigned long number; // they are counted
    struct kept *next;
};

struct trial {
    struct group *group;
    const struct tune_plan *plan;
    bool is_brief;
    FILE *out;
    uint64_t told_ns;
    size_t calls; // so far
    struct pool pools[DTYPES];
    void *states[MAX_CANDIDATES];
    char work[MAX_CANDIDATES][80];
    char reasons[MAX_CANDIDATES][REASON_SIZE]; // why it failed; "" so far
    bool wanted[MAX_CANDIDATES];
    bool was_called[MAX_CANDIDATES];
    const char *refusals[MAX_CANDIDATES]; // why the last shape that was not for it was not
    size_t untried[MAX_CANDIDATES];       // bytes of the smallest shape that there was no memory for; 0: none
    double free_bytes;                    // of the host's memory, for each rank, when all began
    int round;
    struct kept *first, **last; // the oldest; where the next one goes
    unsigned long kept_so_far;
    size_t kept_bytes;
};

static void fail_candidate(struct trial *trial, int index, const char *reason) {
    if (trial->reasons[index][0] == '\0') snprintf(trial->reasons[index], REASON_SIZE, "%s", reason);
}

// Between two calls. Who reads this waits for the next line, not for the end: a plug-in may have many
// candidates and sizes.
static void tell_now_and_then(struct trial *trial) {
    if (trial->group->rank != 0 || clock_ns() - trial->told_ns < TOLD_EVERY_NS) return;
    trial->told_ns = clock_ns();
    fprintf(trial->out, "progress done=%zu\n", trial->calls);
    fflush(trial->out);
}

static void tell_progress(struct trial *trial) {
    trial->calls++;
    tell_now_and_then(trial);
}

// What one rank has against a candidate, on all ranks.
static void share_reason(struct trial *trial, int index) {
    struct group *group = trial->group;
    long first = group_min(group, trial->reasons[index][0] == '\0' ? INT32_MAX : group->rank);
    if (first != INT32_MAX) group_broadcast(group, (int)first, trial->reasons[index], REASON_SIZE);
}

// ---- buffers of calls that have returned ----------------------------------------------------------

static void look_at(struct trial *trial, const struct kept *kept) {
    if (!guarded_holds(trial->group, &kept->buffer, OVERWRITTEN))
        fail_candidate(trial, kept->candidate, writes_late);
    if (!guarded_is_whole(trial->group, &kept->buffer))
        fail_candidate(trial, kept->candidate, "writes beyond a buffer");
}

// At those from this number on.
static void look_at_last(struct trial *trial, unsigned long first) {
    for (const struct kept *kept = trial->first; kept != NULL; kept = kept->next) {
        if (kept->number >= first) look_at(trial, kept);
    }
}

static void drop_oldest(struct trial *trial) {
    struct kept *oldest = trial->first;
    look_at(trial, oldest);
    trial->first = oldest->next;
    if (trial->first == NULL) trial->last = &trial->first;
    trial->kept_bytes -= oldest->buffer.bytes;
    guarded_close(trial->group, &oldest->buffer);
    free(oldest);
}

// Overwrites a buffer and takes it. Of too many, the oldest go.
static bool keep(struct trial *trial, int index, struct guarded *buffer) {
    if (buffer->data == NULL) return true;
    struct kept *kept = malloc(sizeof *kept);
    if (kept == NULL || !backend->ground->fill(trial->group, buffer->data, OVERWRITTEN, buffer->bytes)) {
        free(kept);
        return false;
    }
    *kept = (struct kept){.buffer = *buffer, .candidate = index, .number = trial->kept_so_far++};
    *buffer = (struct guarded){0};
    *trial->last = kept;
    trial->last = &kept->next;
    trial->kept_bytes += kept->buffer.bytes;
    while (trial->kept_bytes > KEPT_BYTES && trial->first != kept) drop_oldest(trial);
    return true;
}

// ---- one call -----------------------------------------------------------------------------------

// One shape with the buffers of its call at hand.
struct probe {
    const struct shape *shape;
    struct call call;
    struct traffic traffic;
    struct guarded arrays[ARRAYS];
    void *plan;
    bool in_place, is_large;
    unsigned long first_kept; // the number of its first buffer that is kept
};

static size_t send_bytes(const struct call *call) {
    return (call->traffic ? call->traffic->send_elements : call_elements(call)) *
           dtype_sizes_bytes[call->dtype];
}

static size_t receive_bytes(const struct call *call) {
    return (call->traffic ? call->traffic->receive_elements : call_elements(call)) *
           dtype_sizes_bytes[call->dtype];
}

static size_t bytes_of(const struct shape *shape) {
    return shape->num_tokens * shape->hidden_size * dtype_sizes_bytes[shape->dtype];
}

// There is no memory for a call: a large one is left out of the trial, which is told.
static void lack_memory(struct trial *trial, int index, const struct probe *probe) {
    size_t bytes = bytes_of(probe->shape);
    if (!probe->is_large)
        fail_candidate(trial, index, "no memory for its trial");
    else if (trial->untried[index] == 0 || bytes < trial->untried[index])
        trial->untried[index] = bytes;
}

static void set_shape(struct trial *trial, struct probe *probe, const struct shape *shape, bool in_place) {
    struct group *group = trial->group;
    *probe = (struct probe){.shape = shape,
                            .in_place = in_place,
                            .is_large = bytes_of(shape) > LARGE_BYTES,
                            .first_kept = trial->kept_so_far};
    if (shape->op != OP_ALLREDUCE) {
        traffic_of(shape->op, shape->splits, shape->num_tokens * shape->hidden_size, group->rank, group->size,
                   0, &probe->traffic);
    }
    probe->call = (struct call){.op = shape->op,
                                .traffic = shape->op == OP_ALLREDUCE ? NULL : &probe->traffic,
                                .plan = &probe->plan,
                                .dtype = shape->dtype,
                                .num_tokens = shape->num_tokens,
                                .hidden_size = shape->hidden_size};
}

// How large the arrays of a call are; `cell`: of one with an epilogue, or NULL.
static void size_arrays(const struct probe *probe, const struct cell *cell, size_t bytes[ARRAYS]) {
    const struct call *call = &probe->call;
    size_t sent = send_bytes(call), received = receive_bytes(call);
    memset(bytes, 0, ARRAYS * sizeof *bytes);
    bytes[ARRAY_INPUT] = probe->in_place ? 0 : sent;
    bytes[ARRAY_OUT] = probe->in_place && sent > received ? sent : received;
    if (cell == NULL) return;
    bytes[ARRAY_RESIDUAL] = sent;
    bytes[ARRAY_GAMMA] = call->hidden_size * dtype_sizes_bytes[call->dtype];
    bytes[ARRAY_RESIDUAL_OUT] = cell->residual_out_bytes;
    bytes[ARRAY_OUT] = cell->out_bytes;
    bytes[ARRAY_SCALES] = cell->block_scales_bytes;
}

// Where the call finds them.
static void place_arrays(struct probe *probe, int rank) {
    struct call *call = &probe->call;
    unsigned char *out = probe->arrays[ARRAY_OUT].data;
    call->input = probe->arrays[ARRAY_INPUT].data;
    call->residual = probe->arrays[ARRAY_RESIDUAL].data;
    call->gamma = probe->arrays[ARRAY_GAMMA].data;
    call->residual_out = probe->arrays[ARRAY_RESIDUAL_OUT].data;
    call->out = out;
    call->block_scales = probe->arrays[ARRAY_SCALES].data;
    if (probe->in_place) call_put_in_place(call, rank, out);
}

// Collective. New buffers, between unmapped memory, for one call.
static bool open_arrays(struct trial *trial, int index, struct probe *probe, const struct cell *cell) {
    size_t bytes[ARRAYS], alignment = plugins_alignment(&backend->candidates[index]);
    bool at_end = trial->round != 1, ready = true;
    if (alignment < LEAST_ALIGNMENT) alignment = LEAST_ALIGNMENT; // no element is larger
    size_arrays(probe, cell, bytes);
    for (int i = 0; i < ARRAYS && ready; i++) {
        struct guarded *array = &probe->arrays[i];
        if (bytes[i] == 0 && i != ARRAY_OUT) continue; // who gets nothing has an address all the same
        ready = guarded_open(trial->group, array, bytes[i], alignment, at_end) == 0 &&
                backend->ground->fill(trial->group, array->data, 0xff, bytes[i]);
    }
    place_arrays(probe, trial->group->rank);
    return group_min(trial->group, ready) != 0;
}

static void close_arrays(struct trial *trial, struct probe *probe) {
    for (int i = 0; i < ARRAYS; i++) guarded_close(trial->group, &probe->arrays[i]);
}

// Gives the call its data, from the arrays of `data` in the host's memory.
static bool put_data(struct trial *trial, struct probe *probe, const struct call *data) {
    const struct ground *ground = backend->ground;
    const struct call *call = &probe->call;
    struct guarded *residual = &probe->arrays[ARRAY_RESIDUAL], *gamma = &probe->arrays[ARRAY_GAMMA];
    return ground->put(trial->group, (void *)(uintptr_t)call->input, data->input, send_bytes(call)) &&
           (residual->data == NULL ||
            ground->put(trial->group, residual->data, data->residual, residual->bytes)) &&
           (gamma->data == NULL || ground->put(trial->group, gamma->data, data->gamma, gamma->bytes));
}

// Whether what was only read is as it was.
static bool has_data(struct trial *trial, const struct probe *probe, const struct call *data) {
    const void *const should[] = {
        [ARRAY_INPUT] = data->input, [ARRAY_RESIDUAL] = data->residual, [ARRAY_GAMMA] = data->gamma};
    for (int i = ARRAY_INPUT; i <= ARRAY_GAMMA; i++) {
        const struct guarded *array = &probe->arrays[i];
        unsigned char *is = array->data == NULL ? NULL : malloc(array->bytes);
        bool same = array->data == NULL ||
                    (is != NULL && backend->ground->get(trial->group, is, array->data, array->bytes) &&
                     memcmp(is, should[i], array->bytes) == 0);
        free(is);
        if (!same) return false;
    }
    return true;
}

// Collective. Whether there is a plan for the call; a shape that it is not made for is left out.
static bool prepare(struct trial *trial, int index, struct probe *probe) {
    char reason[REASON_SIZE];
    const struct strategy *strategy = backend->candidates[index].strategy;
    if (probe->plan != NULL) return true;
    int status = strategy->prepare(trial->states[index], &probe->call, reason);
    if (status < 0) fail_candidate(trial, index, reason);
    return status == 0;
}

// Collective. Runs the call on new buffers, and right behind it compares its output with `should` (in the
// memory that calls work on), or, where that is NULL, nothing.
static int run_call(struct trial *trial, int index, struct probe *probe, const struct call *data,
                    const struct cell *cell, const struct guarded *should, bool *same) {
    const struct candidate *candidate = &backend->candidates[index];
    tell_progress(trial);
    if (!open_arrays(trial, index, probe, cell)) {
        lack_memory(trial, index, probe);
        close_arrays(trial, probe);
        return 0;
    }
    if (!put_data(trial, probe, data)) return -1;
    blame_work(trial->work[index]);
    if (!prepare(trial, index, probe)) {
        blame_work(NULL);
        close_arrays(trial, probe);
        return 0;
    }
    const struct guarded *out = &probe->arrays[ARRAY_OUT]; // in place it is the input, too
    bool has_waited = false;
    bool held = backend->ground->hold == NULL ||
                backend->ground->hold(trial->group, out->data, probe->in_place ? 0 : out->bytes);
    if (!held || !group_barrier(trial->group)) return -1;
    trial->was_called[index] = true;
    blame_work(trial->work[index]);
    int status = candidate->strategy->run(trial->states[index], &probe->call);
    if (backend->ground->let_go != NULL && !backend->ground->let_go(trial->group, &has_waited)) status = -1;
    if (has_waited) fail_candidate(trial, index, "its run waits for the GPU, and does not only enqueue");
    if (status == 0 && should != NULL &&
        !backend->ground->compare(trial->group, probe->call.out, should->data, should->bytes, same))
        status = -1;
    blame_work(NULL);
    return status;
}

// What became of the buffers; then they are overwritten, and looked at again later.
static int end_call(struct trial *trial, int index, struct probe *probe, const struct call *data) {
    if (probe->arrays[ARRAY_OUT].data == NULL) return 0;
    if (!has_data(trial, probe, data)) fail_candidate(trial, index, "changes its input");
    for (int i = 0; i < ARRAYS; i++) {
        if (!guarded_is_whole(trial->group, &probe->arrays[i]))
            fail_candidate(trial, index, "writes beyond a buffer");
    }
    bool kept = true;
    unsigned long first = trial->kept_so_far;
    for (int i = 0; i < ARRAYS; i++) kept = keep(trial, index, &probe->arrays[i]) && kept;
    nanosleep(&(struct timespec){.tv_nsec = LATE_MS * 1000000}, NULL);
    look_at_last(trial, first);
    return kept && group_failure(trial->group) == NULL ? 0 : -1;
}

// A call with data of which every sum is exact: all of its bits are known.
static int call_exactly(struct trial *trial, int index, struct probe *probe, size_t shift) {
    const struct pool *pool = &trial->pools[probe->call.dtype];
    int rank = trial->group->rank, status = -1;
    size_t bytes = receive_bytes(&probe->call);
    struct call data = {.input = pool_input(pool, rank, shift)};
    struct guarded should = {0};
    bool same = true;
    unsigned char *expected = malloc(bytes + 1);
    bool ready = expected != NULL && guarded_open(trial->group, &should, bytes, LEAST_ALIGNMENT, true) == 0;
    if (group_min(trial->group, ready) == 0) {
        lack_memory(trial, index, probe);
        status = 0;
    } else {
        pool_expect(pool, &probe->call, rank, shift, expected);
        if (backend->ground->put(trial->group, should.data, expected, bytes))
            status = run_call(trial, index, probe, &data, NULL, &should, &same);
    }
    guarded_close(trial->group, &should);
    free(expected);
    if (!same) fail_candidate(trial, index, probe->in_place ? "wrong result in place" : "wrong result");
    return status == 0 ? end_call(trial, index, probe, &data) : status;
}

// ---- sums that are rounded, and epilogues -----------------------------------------------------------

// Whether all ranks have these bits. Collective.
static bool has_same_bits(struct group *group, const void *data, size_t bytes) {
    uint64_t hash = group->kernels->hash(data, bytes), first = hash;
    group_broadcast(group, 0, &first, sizeof first);
    return group_min(group, first == hash) != 0;
}

// Brings the results of a call to its cell.
static bool fetch(struct trial *trial, const struct probe *probe, struct cell *cell) {
    const struct ground *ground = backend->ground;
    const struct call *call = &probe->call;
    return ground->get(trial->group, cell->out, call->out, cell->out_bytes) &&
           (cell->residual_out == NULL ||
            ground->get(trial->group, cell->residual_out, call->residual_out, cell->residual_out_bytes)) &&
           (cell->block_scales == NULL ||
            ground->get(trial->group, cell->block_scales, call->block_scales, cell->block_scales_bytes));
}

// Checks what a call left against the float64 sums of its cell, as near as the candidate says it rounds.
static void check_cell(struct trial *trial, int index, struct cell *cell, size_t shift) {
    bool fp32 = backend->candidates[index].accumulates_fp32, is_fused = cell->shape.fusion != FUSION_NONE;
    char what[REASON_SIZE / 2], reason[REASON_SIZE];
    bool is_same = !fp32 || is_fused || cell->shape.op != OP_ALLREDUCE ||
                   has_same_bits(trial->group, cell->out, cell->out_bytes);
    if (!cell_check(cell, shift, fp32, what, sizeof what)) {
        snprintf(reason, sizeof reason, "%s%s", what, fp32 && !is_fused ? ", for sums in fp32" : "");
        fail_candidate(trial, index, reason);
    }
    if (!is_same) fail_candidate(trial, index, "its sums in fp32 have other bits on another rank");
}

// Calls with data whose sums have to be rounded: exact sums do not tell how; with an epilogue where the
// shape has one.
static int call_with_rounding(struct trial *trial, int index, struct probe *probe) {
    struct cell cell;
    const struct shape *shape = probe->shape;
    bool is_fused = probe->call.fusion != FUSION_NONE;
    struct shape of_cell = {.op = shape->op,
                            .dtype = shape->dtype,
                            .fusion = probe->call.fusion,
                            .num_tokens = shape->num_tokens,
                            .hidden_size = shape->hidden_size};
    int status = 0;
    bool ready = cell_open(&cell, &of_cell, trial->group->rank, trial->group->size, 1) == 0;
    if (group_min(trial->group, ready) == 0) {
        lack_memory(trial, index, probe);
        cell.shifts = 0;
    }
    if (probe->is_large && cell.shifts > 1) cell.shifts = 1;
    for (size_t shift = 0; shift < cell.shifts && status == 0; shift++) {
        struct call data = cell_call(&cell, shift);
        probe->call.epsilon = data.epsilon;
        probe->call.scale = data.scale;
        status = run_call(trial, index, probe, &data, is_fused ? &cell : NULL, NULL, NULL);
        if (status != 0 || probe->arrays[ARRAY_OUT].data == NULL) break;
        status = fetch(trial, probe, &cell) ? 0 : -1;
        if (status == 0) check_cell(trial, index, &cell, shift);
        if (status == 0) status = end_call(trial, index, probe, &data);
    }
    cell_close(&cell);
    return status;
}

// ---- all calls of a candidate -----------------------------------------------------------------------

// Ends a shape: frees its plan.
static int end_shape(struct trial *trial, int index, struct probe *probe, int status) {
    if (status == 0) {
        blame_work(trial->work[index]);
        if (!plugins_release(&backend->candidates[index], probe->plan))
            fail_candidate(trial, index, "writes beyond its workspace");
        blame_work(NULL);
        look_at_last(trial, probe->first_kept);
    }
    close_arrays(trial, probe);
    return status;
}

static int try_shape(struct trial *trial, int index, const struct shape *shape, bool in_place) {
    struct probe probe;
    int status = 0;
    set_shape(trial, &probe, shape, in_place);
    size_t calls = probe.is_large ? 1 : CALLS;
    for (size_t i = 0; i < calls && status == 0; i++) {
        status = call_exactly(trial, index, &probe, probe.is_large ? (size_t)trial->round : i);
        if (status == 0) share_reason(trial, index); // what is wrong on any rank ends it
        if (trial->reasons[index][0] != '\0') break;
    }
    bool has_sums = shape->op == OP_ALLREDUCE || shape->op == OP_REDUCESCATTER;
    bool is_rounded = trial->reasons[index][0] == '\0' && has_sums && !probe.is_large;
    if (status == 0 && is_rounded) status = call_with_rounding(trial, index, &probe);
    return end_shape(trial, index, &probe, status);
}

// Calls with the epilogue of a shape.
static int try_fused(struct trial *trial, int index, const struct shape *shape) {
    struct probe probe;
    set_shape(trial, &probe, shape, false);
    probe.call.fusion = shape->fusion;
    return end_shape(trial, index, &probe, call_with_rounding(trial, index, &probe));
}

// Why the candidate is not tried with a shape: with its epilogue (or FUSION_NONE), in this place; NULL: it
// is. Those of one op and type differ in size alone.
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
    if (refusal == NULL && !candidate_does(candidate, shape->op)) refusal = "does not do this op";
    if (refusal == NULL) refusal = plugins_refusal(candidate, trial->group, &call);
    return refusal != NULL ? refusal : plugins_place_refusal(candidate, trial->group, &call, in_place);
}

// Whether there is memory for the trial of a shape; alike on all ranks.
static bool has_room(struct trial *trial, int index, const struct shape *shape) {
    double bytes = (double)bytes_of(shape) * (shape->fusion == FUSION_NONE ? COPIES : COPIES_FUSED);
    if (bytes <= trial->free_bytes / SHARE_OF_FREE || bytes_of(shape) <= LARGE_BYTES) return true;
    lack_memory(trial, index, &(struct probe){.shape = shape, .is_large = true});
    return false;
}

// In one place, with or without the epilogue. -1: see group_failure.
static int try_way(struct trial *trial, int index, const struct shape *shape, enum fusion fusion,
                   bool in_place) {
    const char *refusal = why_not(trial, index, shape, fusion, in_place);
    if (trial->reasons[index][0] != '\0') return 0;
    if (refusal != NULL) {
        if (in_place == plugins_is_in_place(&backend->candidates[index])) trial->refusals[index] = refusal;
        return 0;
    }
    int status =
        fusion != FUSION_NONE ? try_fused(trial, index, shape) : try_shape(trial, index, shape, in_place);
    if (status == 0) share_reason(trial, index);
    return status;
}

static int try_cell(struct trial *trial, int index, const struct shape *shape) {
    if (bytes_of(shape) > LARGE_BYTES && trial->round >= BRIEF_ROUNDS) return 0;
    if (!has_room(trial, index, shape)) return 0;
    if (shape->fusion != FUSION_NONE && try_way(trial, index, shape, shape->fusion, false) != 0) return -1;
    if (try_way(trial, index, shape, FUSION_NONE, false) != 0) return -1;
    return try_way(trial, index, shape, FUSION_NONE, true);
}

static int try_candidate(struct trial *trial, int index) {
    bool was_tried[OPS] = {false};
    for (size_t i = 0; i < trial->plan->count && trial->reasons[index][0] == '\0'; i++) {
        const struct request *request = &trial->plan->cells[i];
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
        blame_work(trial->work[i]);
        open[i] = candidate->strategy->setup(candidate, trial->group, &trial->states[i], reason) == 0;
        blame_work(NULL);
        if (!open[i]) fail_candidate(trial, i, reason);
    }
    return 0;
}

// Of ranks that are threads of one process one looks at what it holds.
static bool looks_for_all(const struct trial *trial) {
    return trial->group->rank == 0 || !trial->group->shares_process;
}

static int run_round(struct trial *trial) {
    bool open[MAX_CANDIDATES];
    int status = open_states(trial, open);
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (open[i]) status = try_candidate(trial, i);
    }
    if (looks_for_all(trial)) held_look(); // before fini
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (!open[i]) continue;
        blame_work(trial->work[i]);
        backend->candidates[i].strategy->teardown(trial->states[i]);
        blame_work(NULL);
    }
    if (status == 0 && !group_barrier(trial->group)) status = -1;
    while (trial->first != NULL) drop_oldest(trial); // fini is over
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (open[i]) share_reason(trial, i);
    }
    return status;
}

// The kind that grew, on all ranks; HELD_KINDS: nothing did, anywhere.
static int growth(struct trial *trial, const struct held *before, const struct held *after) {
    return (int)group_min(trial->group, held_more(before, after));
}

// What this process and its device hold. Of ranks that are threads one looks, while the others rest.
static struct held held_by(struct trial *trial, time_t since) {
    struct held held = {{0}};
    struct group *group = trial->group;
    if (looks_for_all(trial)) held = held_now(since);
    held.count[HELD_DEVICE] = (long)backend->ground->device_bytes(group);
    group_barrier(group);
    return held;
}

// Whether strays come while nothing of the plug-in runs, too: then they tell nothing of it. Looks for several
// times as long as a round takes, and takes those that came into `after`.
static bool strays_come_anyway(struct trial *trial, time_t since, uint64_t round_ns, struct held *after) {
    double without_ns = group_max(trial->group, (double)round_ns) * WITHOUT_ROUNDS;
    size_t slices = LEAST_SLICES + (size_t)(without_ns / SLICE_NS);
    bool came = false;
    for (size_t i = 0; i < slices && !came; i++) {
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
        long strays = held_by(trial, since).count[HELD_STRAYS];
        came = group_max(trial->group, strays > after->count[HELD_STRAYS]) > 0;
        after->count[HELD_STRAYS] = strays;
        tell_now_and_then(trial);
    }
    return came;
}

// The rounds. What holds more after each of the last ones than after the one before, leaks; so do processes
// that outlive fini, be they more or not, for they hold what the rank has open. `grown`: what does;
// HELD_KINDS: nothing.
static int run_rounds(struct trial *trial, int *grown) {
    time_t since = time(NULL);
    struct held before = {{0}};
    long children = looks_for_all(trial) ? warden_children() : 0;
    *grown = HELD_KINDS;
    for (trial->round = 0; trial->round < ROUNDS + MORE_ROUNDS; trial->round++) {
        uint64_t begun_ns = clock_ns();
        if (run_round(trial) != 0) return -1;
        if (trial->is_brief && trial->round == BRIEF_ROUNDS - 1) return 0;
        uint64_t round_ns = clock_ns() - begun_ns;
        for (int i = 0; looks_for_all(trial) && i < LEAST_SLICES && warden_children() > children; i++)
            nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL); // who is just ending is no leak
        struct held after = held_by(trial, since);
        before.count[HELD_CHILDREN] = children;
        if (trial->round >= ROUNDS - 1) {
            *grown = growth(trial, &before, &after);
            if (*grown == HELD_STRAYS && strays_come_anyway(trial, since, round_ns, &after)) {
                before.count[HELD_STRAYS] = after.count[HELD_STRAYS];
                *grown = growth(trial, &before, &after);
            }
            if (*grown == HELD_KINDS) return 0;
        }
        before = after;
    }
    return 0;
}

// Tries all; who leaks, nobody can tell, so that all of the plug-in have failed.
static int run_all(struct trial *trial) {
    int grown;
    if (run_rounds(trial, &grown) != 0) return -1;
    for (int i = 0; i < candidate_count() && grown != HELD_KINDS; i++) {
        char reason[REASON_SIZE];
        snprintf(reason, sizeof reason, "its plug-in leaks %s from init to fini", held_names[grown]);
        if (trial->wanted[i]) fail_candidate(trial, i, reason);
    }
    return 0;
}

// What each rank may take of the machine's memory, and of its own address space.
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
    for (size_t i = 0; i < trial->plan->count; i++) {
        const struct shape *shape = &trial->plan->cells[i].shape;
        size_t own = shape->num_tokens * shape->hidden_size;
        bool has_room = (double)bytes_of(shape) * COPIES <= trial->free_bytes / SHARE_OF_FREE ||
                        bytes_of(shape) <= LARGE_BYTES;
        if (has_room && own > elements[shape->dtype]) elements[shape->dtype] = own;
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        if (elements[dtype] == 0) continue;
        complete = complete && pool_open(&trial->pools[dtype], (enum dtype)dtype, elements[dtype],
                                         trial->group->size, trial->group->kernels) == 0;
    }
    return group_min(trial->group, complete) != 0 ? 0 : -1;
}

// What became of a candidate. One that was never called has not passed.
static void tell_outcome(const struct trial *trial, int index) {
    const char *name = backend->candidates[index].name, *reason = trial->reasons[index];
    if (reason[0] != '\0') {
        fprintf(trial->out, "trial strategy=%s status=failed reason=%s\n", name, reason);
    } else if (!trial->was_called[index]) {
        const char *refusal = trial->refusals[index];
        fprintf(trial->out, "trial strategy=%s status=uncalled reason=%s\n", name,
                trial->untried[index] > 0 ? "no memory for so large a call"
                : refusal != NULL         ? refusal
                                          : "does not do such a call");
    } else {
        fprintf(trial->out, "trial strategy=%s status=passed", name);
        if (trial->untried[index] > 0) fprintf(trial->out, " untried=%zu", trial->untried[index]);
        fputc('\n', trial->out);
    }
}

int trial_run(struct group *group, const struct tune_plan *plan, bool is_brief, FILE *out) {
    struct trial *trial = calloc(1, sizeof *trial);
    if (trial == NULL) return -1;
    trial->group = group;
    trial->plan = plan;
    trial->is_brief = is_brief;
    trial->out = out;
    trial->told_ns = clock_ns();
    trial->last = &trial->first;
    for (int i = 0; i < candidate_count(); i++) {
        for (size_t cell = 0; cell < plan->count; cell++) {
            trial->wanted[i] =
                trial->wanted[i] || (backend->candidates[i].plugin && plan->cells[cell].wanted[i]);
        }
        snprintf(trial->work[i], sizeof trial->work[i], "strategy %s", backend->candidates[i].name);
    }
    trial->free_bytes = room_of_rank(group);
    int status = open_pools(trial);
    if (status != 0) group_fail(group, "out of memory");
    blame_work(NULL);
    if (status == 0) status = run_all(trial);
    for (int i = 0; i < candidate_count() && status == 0 && group->rank == 0; i++) {
        if (trial->wanted[i]) tell_outcome(trial, i);
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) pool_close(&trial->pools[dtype]);
    free(trial);
    return status;
}
