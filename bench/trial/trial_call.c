// Calls of a trial; see trial_call.h.
#include "trial_call.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls/cell_check.h"
#include "calls/in_place.h"
#include "plugin_loader/plugin_limits.h"
#include "plugin_loader/plugin_strategy.h"
#include "ranks/fault_report.h"
#include "returned_buffers.h"

enum {
    CALLS = 3,   // of one shape
    LATE_MS = 2, // until the first check for late writes
};

// The arrays of a call. Calls without an epilogue have ARRAY_INPUT and ARRAY_OUT.
enum array { ARRAY_INPUT, ARRAY_RESIDUAL, ARRAY_GAMMA, ARRAY_RESIDUAL_OUT, ARRAY_OUT, ARRAY_SCALES, ARRAYS };

// One shape, and the buffers of its current call.
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

static void set_shape(struct trial *trial, struct probe *probe, const struct shape *shape, bool in_place) {
    struct group *group = trial->group;
    *probe = (struct probe){.shape = shape,
                            .in_place = in_place,
                            .is_large = shape_bytes(shape) > LARGE_BYTES,
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

// The sizes of the arrays of a call. `cell`: its cell if it has an epilogue, or NULL.
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

// Sets the addresses in the call.
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
        if (bytes[i] == 0 && i != ARRAY_OUT) continue; // an empty output has an address, too
        ready = guarded_open(trial->group, array, bytes[i], alignment, at_end) == 0 &&
                backend->services->fill(trial->group, array->data, 0xff, bytes[i]);
    }
    place_arrays(probe, trial->group->rank);
    return group_min(trial->group, ready) != 0;
}

static void close_arrays(struct trial *trial, struct probe *probe) {
    for (int i = 0; i < ARRAYS; i++) guarded_close(trial->group, &probe->arrays[i]);
}

// Copies the data of the call from the arrays of `data` in the host's memory.
static bool put_data(struct trial *trial, struct probe *probe, const struct call *data) {
    const struct plugin_services *services = backend->services;
    const struct call *call = &probe->call;
    struct guarded *residual = &probe->arrays[ARRAY_RESIDUAL], *gamma = &probe->arrays[ARRAY_GAMMA];
    return services->put(trial->group, (void *)(uintptr_t)call->input, data->input, send_bytes(call)) &&
           (residual->data == NULL ||
            services->put(trial->group, residual->data, data->residual, residual->bytes)) &&
           (gamma->data == NULL || services->put(trial->group, gamma->data, data->gamma, gamma->bytes));
}

// Whether the arrays that are only read are unchanged.
static bool has_data(struct trial *trial, const struct probe *probe, const struct call *data) {
    const void *const should[] = {
        [ARRAY_INPUT] = data->input, [ARRAY_RESIDUAL] = data->residual, [ARRAY_GAMMA] = data->gamma};
    for (int i = ARRAY_INPUT; i <= ARRAY_GAMMA; i++) {
        const struct guarded *array = &probe->arrays[i];
        unsigned char *is = array->data == NULL ? NULL : malloc(array->bytes);
        bool same = array->data == NULL ||
                    (is != NULL && backend->services->get(trial->group, is, array->data, array->bytes) &&
                     memcmp(is, should[i], array->bytes) == 0);
        free(is);
        if (!same) return false;
    }
    return true;
}

// Collective. Whether there is a plan for the call; an unsupported shape is skipped.
static bool prepare(struct trial *trial, int index, struct probe *probe) {
    char reason[REASON_SIZE];
    const struct strategy *strategy = backend->candidates[index].strategy;
    if (probe->plan != NULL) return true;
    int status = strategy->prepare(trial->states[index], &probe->call, reason);
    if (status < 0) trial_fail(trial, index, reason);
    return status == 0;
}

// Collective. Runs the call on new buffers, and compares its output with `should`, which is in the memory of
// calls, right after it. NULL: no comparison.
static int run_call(struct trial *trial, int index, struct probe *probe, const struct call *data,
                    const struct cell *cell, const struct guarded *should, bool *same) {
    const struct candidate *candidate = &backend->candidates[index];
    trial->calls++;
    trial_report_progress(trial);
    if (!open_arrays(trial, index, probe, cell)) {
        trial_lack_memory(trial, index, probe->shape);
        close_arrays(trial, probe);
        return 0;
    }
    if (!put_data(trial, probe, data)) return -1;
    fault_work(trial->work[index]);
    if (!prepare(trial, index, probe)) {
        fault_work(NULL);
        close_arrays(trial, probe);
        return 0;
    }
    const struct guarded *out = &probe->arrays[ARRAY_OUT]; // in place it is the input, too
    bool has_waited = false;
    bool held = backend->services->hold == NULL ||
                backend->services->hold(trial->group, out->data, probe->in_place ? 0 : out->bytes);
    if (!held || !group_barrier(trial->group)) return -1;
    trial->was_called[index] = true;
    fault_work(trial->work[index]);
    int status = candidate->strategy->run(trial->states[index], &probe->call);
    if (backend->services->let_go != NULL && !backend->services->let_go(trial->group, &has_waited))
        status = -1;
    if (has_waited) trial_fail(trial, index, "its run waits for the GPU, and does not only enqueue");
    if (status == 0 && should != NULL &&
        !backend->services->compare(trial->group, probe->call.out, should->data, should->bytes, same))
        status = -1;
    fault_work(NULL);
    return status;
}

// Checks the buffers; then they are overwritten, and checked again later.
static int end_call(struct trial *trial, int index, struct probe *probe, const struct call *data) {
    if (probe->arrays[ARRAY_OUT].data == NULL) return 0;
    if (!has_data(trial, probe, data)) trial_fail(trial, index, "changes its input");
    for (int i = 0; i < ARRAYS; i++) {
        if (!guarded_is_whole(trial->group, &probe->arrays[i]))
            trial_fail(trial, index, "writes beyond a buffer");
    }
    bool kept = true;
    unsigned long first = trial->kept_so_far;
    for (int i = 0; i < ARRAYS; i++) kept = returned_keep(trial, index, &probe->arrays[i]) && kept;
    nanosleep(&(struct timespec){.tv_nsec = LATE_MS * 1000000}, NULL);
    returned_check(trial, first);
    return kept && group_failure(trial->group) == NULL ? 0 : -1;
}

// A call with data of which every sum is exact, so that all bits of the result are known.
static int call_exactly(struct trial *trial, int index, struct probe *probe, size_t data_set) {
    const struct pool *pool = &trial->pools[probe->call.dtype];
    int rank = trial->group->rank, status = -1;
    size_t bytes = receive_bytes(&probe->call);
    struct call data = {.input = pool_input(pool, probe->call.op, rank, data_set)};
    struct guarded should = {0};
    bool same = true;
    unsigned char *expected = malloc(bytes + 1);
    bool ready = expected != NULL && guarded_open(trial->group, &should, bytes, LEAST_ALIGNMENT, true) == 0;
    if (group_min(trial->group, ready) == 0) {
        trial_lack_memory(trial, index, probe->shape);
        status = 0;
    } else {
        pool_expect(pool, &probe->call, rank, data_set, expected);
        if (backend->services->put(trial->group, should.data, expected, bytes))
            status = run_call(trial, index, probe, &data, NULL, &should, &same);
    }
    guarded_close(trial->group, &should);
    free(expected);
    if (!same) trial_fail(trial, index, probe->in_place ? "wrong result in place" : "wrong result");
    return status == 0 ? end_call(trial, index, probe, &data) : status;
}

// ---- sums that are rounded, and epilogues -----------------------------------------------------------

// Collective. Whether all ranks have these bits.
static bool has_same_bits(struct group *group, const void *data, size_t bytes) {
    uint64_t hash = group->kernels->hash(data, bytes), first = hash;
    group_broadcast(group, 0, &first, sizeof first);
    return group_min(group, first == hash) != 0;
}

// Copies the results of a call to its cell.
static bool fetch(struct trial *trial, const struct probe *probe, struct cell *cell) {
    const struct plugin_services *services = backend->services;
    const struct call *call = &probe->call;
    return services->get(trial->group, cell->out, call->out, cell->out_bytes) &&
           (cell->residual_out == NULL ||
            services->get(trial->group, cell->residual_out, call->residual_out, cell->residual_out_bytes)) &&
           (cell->block_scales == NULL ||
            services->get(trial->group, cell->block_scales, call->block_scales, cell->block_scales_bytes));
}

// Checks the results of a call against the float64 sums of its cell, within the rounding that the candidate
// declares.
static void check_cell(struct trial *trial, int index, struct cell *cell, size_t data_set) {
    bool fp32 = backend->candidates[index].accumulates_fp32, is_fused = cell->shape.fusion != FUSION_NONE;
    char what[REASON_SIZE / 2], reason[REASON_SIZE];
    bool is_same = !fp32 || is_fused || cell->shape.op != OP_ALLREDUCE ||
                   has_same_bits(trial->group, cell->out, cell->out_bytes);
    if (!cell_check(cell, data_set, candidate_rounding(&backend->candidates[index]), what, sizeof what)) {
        snprintf(reason, sizeof reason, "%s%s", what, fp32 && !is_fused ? ", for sums in fp32" : "");
        trial_fail(trial, index, reason);
    }
    if (!is_same) trial_fail(trial, index, "its sums in fp32 have other bits on another rank");
}

// Calls with data of which the sums must be rounded, since exact sums do not show the rounding; with an
// epilogue if the shape has one.
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
        trial_lack_memory(trial, index, probe->shape);
        cell.data_sets = 0;
    }
    if (probe->is_large && cell.data_sets > 1) cell.data_sets = 1;
    for (size_t data_set = 0; data_set < cell.data_sets && status == 0; data_set++) {
        struct call data = cell_call(&cell, data_set);
        probe->call.epsilon = data.epsilon;
        probe->call.scale = data.scale;
        status = run_call(trial, index, probe, &data, is_fused ? &cell : NULL, NULL, NULL);
        if (status != 0 || probe->arrays[ARRAY_OUT].data == NULL) break;
        status = fetch(trial, probe, &cell) ? 0 : -1;
        if (status == 0) check_cell(trial, index, &cell, data_set);
        if (status == 0) status = end_call(trial, index, probe, &data);
    }
    cell_close(&cell);
    return status;
}

// ---- a shape ------------------------------------------------------------------------------------

// Ends a shape: frees its plan.
static int end_shape(struct trial *trial, int index, struct probe *probe, int status) {
    if (status == 0) {
        fault_work(trial->work[index]);
        if (!plugins_release(&backend->candidates[index], probe->plan))
            trial_fail(trial, index, "writes beyond its workspace");
        fault_work(NULL);
        returned_check(trial, probe->first_kept);
    }
    close_arrays(trial, probe);
    return status;
}

int trial_try_shape(struct trial *trial, int index, const struct shape *shape, bool in_place) {
    struct probe probe;
    int status = 0;
    set_shape(trial, &probe, shape, in_place);
    size_t calls = probe.is_large ? 1 : CALLS;
    for (size_t i = 0; i < calls && status == 0; i++) {
        status = call_exactly(trial, index, &probe, probe.is_large ? (size_t)trial->round : i);
        if (status == 0) trial_share_reason(trial, index); // a fault on any rank ends it
        if (trial->reasons[index][0] != '\0') break;
    }
    bool is_rounded = trial->reasons[index][0] == '\0' && op_sums[shape->op] && !probe.is_large;
    if (status == 0 && is_rounded) status = call_with_rounding(trial, index, &probe);
    return end_shape(trial, index, &probe, status);
}

int trial_try_fused(struct trial *trial, int index, const struct shape *shape) {
    struct probe probe;
    set_shape(trial, &probe, shape, false);
    probe.call.fusion = shape->fusion;
    return end_shape(trial, index, &probe, call_with_rounding(trial, index, &probe));
}
