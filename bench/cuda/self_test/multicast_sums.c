// The stage of multicast. Sums of small multiples of 1/8 are exact, so every bit is known; then, if the
// switch adds, the same for random data, of which PTX leaves the rounding open: a census of the distances
// from the correctly rounded sum.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/cell_check.h"
#include "calls/exact_data.h"
#include "cuda/candidate.h"
#include "elements/element.h"
#include "stages.h"

enum { TOKENS = 32, HIDDEN_SIZE = 1024, ELEMENTS = TOKENS * HIDDEN_SIZE, FARTHEST = 3 };

// Sums on this rank, and how many elements are so many units in the last place from the correctly rounded
// sum; the last entry: farther away.
struct sums {
    struct device *device;
    const struct candidate *candidate;
    void *state;
    uint64_t counts[FARTHEST + 1];
    double largest;           // error of a random sum of 16 bits, in units in the last place
    char reason[REASON_SIZE]; // "": no wrong sum
};

static struct call call_on_device(const struct sums *sums, enum dtype dtype) {
    CUdeviceptr base = sums->device->arena.of[sums->device->group->rank];
    return (struct call){.op = OP_ALLREDUCE,
                         .dtype = dtype,
                         .num_tokens = TOKENS,
                         .hidden_size = HIDDEN_SIZE,
                         .input = (void *)(uintptr_t)base,
                         .out = (void *)(uintptr_t)(base + ELEMENTS * sizeof(float))};
}

// Collective. Adds the ranks' inputs, and copies the sums to `out`. False: see group_failure.
static bool add(const struct sums *sums, enum dtype dtype, const void *input, void *out) {
    struct device *device = sums->device;
    struct call call = call_on_device(sums, dtype);
    size_t bytes = call_bytes(&call);
    CUresult result =
        device->driver->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)call.input, input, bytes, device->stream);
    if (!device_ok(device, result, "a copy") || !device_finish(device) || !group_barrier(device->group) ||
        sums->candidate->strategy->run(sums->state, &call) != 0 || !device_finish(device))
        return false;
    result = device->driver->cuMemcpyDtoHAsync(out, (CUdeviceptr)(uintptr_t)call.out, bytes, device->stream);
    return device_ok(device, result, "a copy") && device_finish(device) && group_barrier(device->group);
}

// Collective. Exact sums.
static bool add_integers(struct sums *sums, enum dtype dtype, void *out) {
    struct group *group = sums->device->group;
    struct pool pool;
    struct call call = call_on_device(sums, dtype);
    call.out = out;
    bool is_open = pool_open(&pool, dtype, ELEMENTS, group->size, group->kernels) == 0;
    bool right = group_min(group, is_open) != 0 &&
                 add(sums, dtype, pool_input(&pool, OP_ALLREDUCE, group->rank, 0), out);
    if (right && !pool_is_right(&pool, &call, group->rank, 0))
        snprintf(sums->reason, REASON_SIZE, "%s, %s: a sum of multiples of 1/8 is wrong",
                 sums->candidate->name, dtype_names[dtype]);
    if (is_open) pool_close(&pool);
    return right;
}

// Adds an element to the census: its distance from the correctly rounded sum.
static void count(struct sums *sums, enum dtype dtype, const void *out, size_t at, double sum) {
    unsigned char rounded[sizeof(float)];
    element_store(dtype, rounded, 0, (float)sum);
    double steps = ulps_between(dtype, element_value(dtype, rounded, 0), element_value(dtype, out, at));
    sums->counts[steps < FARTHEST ? (int)ceil(steps - 1e-9) : FARTHEST]++;
}

// Collective. The census of random sums.
static bool add_fractions(struct sums *sums, enum dtype dtype, void *out) {
    struct group *group = sums->device->group;
    struct shape shape = {.dtype = dtype, .num_tokens = TOKENS, .hidden_size = HIDDEN_SIZE};
    struct cell cell;
    bool is_open = cell_open(&cell, &shape, group->rank, group->size, 1) == 0;
    bool right = group_min(group, is_open) != 0 && add(sums, dtype, cell.input, out);
    for (size_t i = 0; right && i < ELEMENTS; i++) count(sums, dtype, out, i, cell_sum(&cell, 0, i));
    if (right) {
        memcpy(cell.out, out, ELEMENTS * dtype_sizes_bytes[dtype]);
        sums->largest = fmax(sums->largest, cell_sum_error(&cell, 0, cell_part_of(&cell, 0, 1)));
    }
    if (is_open) cell_close(&cell);
    return right;
}

// Collective. All data types of one strategy.
static bool add_all(struct sums *sums, struct findings *findings) {
    static _Alignas(16) unsigned char out[MAX_TP][ELEMENTS * sizeof(float)];
    void *mine = out[sums->device->group->rank];
    bool goes_on = true;
    for (int dtype = 0; dtype < DTYPES && goes_on; dtype++) {
        snprintf(findings->step, STEP_SIZE, "%s, %s", sums->candidate->name, dtype_names[dtype]);
        goes_on = add_integers(sums, (enum dtype)dtype, mine);
        if (goes_on && sums->candidate->adds_in_switch)
            goes_on = add_fractions(sums, (enum dtype)dtype, mine);
    }
    return goes_on;
}

// Collective. Every strategy that needs multicast.
static bool try_strategies(struct sums *sums, struct findings *findings) {
    struct group *group = sums->device->group;
    bool goes_on = true;
    for (int i = 0; i < candidate_count() && goes_on && sums->reason[0] == '\0'; i++) {
        const struct candidate *candidate = &backend->candidates[i];
        const struct kernel_detail *detail = candidate->detail;
        if (candidate->strategy != &strategy_cuda_kernel || detail->epilogue != EPILOGUE_FUSED ||
            !cuda_kernel_facts[detail->kernel].needs_multicast)
            continue;
        sums->candidate = candidate;
        if (candidate->strategy->setup(candidate, group, &sums->state, sums->reason) != 0) break;
        goes_on = add_all(sums, findings);
        if (goes_on) candidate->strategy->teardown(sums->state);
        if (goes_on) group_all_right(group, sums->reason[0] == '\0', sums->reason, REASON_SIZE);
    }
    return goes_on;
}

enum stage_end stage_multicast(struct group *group, const struct stage *stage, struct findings *findings) {
    struct device *device = device_of(group);
    struct sums sums = {.device = device};
    (void)stage;
    if (device->options.loopback || !device->can_multicast) {
        if (group->rank == 0)
            snprintf(findings->text, FINDING_SIZE, "%s",
                     device->options.loopback ? "a team needs a GPU for each rank"
                                              : device_no_multicast(device));
        return STAGE_SKIPPED;
    }
    if (!try_strategies(&sums, findings)) {
        note_flags(group, findings);
        return STAGE_FAILED;
    }
    if (group->rank == 0 && sums.reason[0] != '\0') snprintf(findings->text, FINDING_SIZE, "%s", sums.reason);
    if (sums.reason[0] != '\0') return STAGE_FAILED;
    if (group->rank == 0)
        snprintf(findings->text, FINDING_SIZE,
                 "exact sums are exact; of random sums %llu are rounded correctly, %llu are 1 ulp from that, "
                 "%llu 2, %llu more; the largest error is %.2f ulp",
                 (unsigned long long)sums.counts[0], (unsigned long long)sums.counts[1],
                 (unsigned long long)sums.counts[2], (unsigned long long)sums.counts[3], sums.largest);
    return STAGE_OK;
}
