// Back-to-back calls; see back_to_back.h. A call may begin on one rank while another rank is still in the
// previous one, so that overlap counts as in a program that does nothing else.
#include "back_to_back.h"

#include <stdio.h>
#include <string.h>

#include "calls/cell_check.h"
#include "plugin_loader/plugin_limits.h"
#include "ranks/watch.h"

enum { CALLS_PER_DEADLINE = 256, FEWEST_CALLS = 3 };

// A cell, and its buffers for the candidates.
struct loaded_cell {
    struct cell cell;
    void *buffers;
};

// `count` calls, from data set `first` on, until they are complete. -1: see group_failure.
static int call_often(struct harness *harness, int index, const struct loaded_cell *loaded, size_t first,
                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct call call = backend->call(loaded->buffers, &backend->candidates[index],
                                         (first + i) % loaded->cell.data_sets, 0);
        if (i % CALLS_PER_DEADLINE == 0) watch_step(PHASE_TIMED, backend->candidates[index].name);
        if (backend->candidates[index].strategy->run(harness->states[index], &call) != 0) return -1;
    }
    return backend->finish(loaded->buffers);
}

// The number of ranks on which the result of data set `data_set` is wrong.
static size_t wrong_ranks(struct group *group, const struct candidate *candidate,
                          const struct loaded_cell *loaded, size_t data_set) {
    char what[REASON_SIZE];
    bool wrong = backend->fetch(loaded->buffers, 0, cell_part_of(&loaded->cell, 0, 1)) != 0 ||
                 !cell_check(&loaded->cell, data_set, candidate_rounding(candidate), what, sizeof what);
    return group_sum(group, wrong);
}

// The number of calls that fit into the budget, the same on all ranks, by the time of one call.
static int fitting_calls(struct harness *harness, int index, const struct loaded_cell *loaded,
                         const struct back_to_back *how, uint32_t *count) {
    *count = how->iterations;
    if (how->budget_us <= 0) return 0;
    uint64_t start_ns = clock_ns();
    if (call_often(harness, index, loaded, 0, 1) != 0) return -1;
    double time_us = group_max(harness->group, (double)(clock_ns() - start_ns) / 1000);
    double fit = how->budget_us / (time_us + 0.01);
    if (fit < how->iterations) *count = fit < (double)FEWEST_CALLS ? FEWEST_CALLS : (uint32_t)fit;
    return 0;
}

// The time of the slowest rank per call, in microseconds.
static int time_calls(struct harness *harness, int index, const struct loaded_cell *loaded,
                      const struct back_to_back *how, struct summary *summary) {
    uint32_t count;
    if (call_often(harness, index, loaded, 0, how->warm_up) != 0) return -1;
    if (fitting_calls(harness, index, loaded, how, &count) != 0) return -1;
    if (!group_barrier(harness->group)) return -1;
    uint64_t start_ns = clock_ns();
    if (call_often(harness, index, loaded, 0, count) != 0) return -1;
    double mine_us = (double)(clock_ns() - start_ns) / 1000 / count;
    summary->samples = count;
    summary->median = group_max(harness->group, mine_us);
    return 0;
}

static int measure_candidate(struct harness *harness, int index, const struct loaded_cell *loaded,
                             const struct back_to_back *how, struct result *result) {
    const struct candidate *candidate = &backend->candidates[index];
    struct group *group = harness->group;
    if (backend->poison(loaded->buffers) != 0) return -1;
    if (how->check) {
        if (call_often(harness, index, loaded, 0, 1) != 0) return -1;
        result->wrong = wrong_ranks(group, candidate, loaded, 0);
    }
    if (result->wrong == 0 && time_calls(harness, index, loaded, how, &result->time_us) != 0) return -1;
    if (how->check && result->wrong == 0) {
        result->wrong =
            wrong_ranks(group, candidate, loaded, (result->time_us.samples - 1) % loaded->cell.data_sets);
    }
    if (result->wrong > 0) {
        snprintf(harness->reasons[index], REASON_SIZE, "wrong result on %zu of %d ranks", result->wrong,
                 group->size);
        result->reason = harness->reasons[index];
    }
    return 0;
}

// Why a candidate cannot be prepared for this cell, or NULL.
static const char *unprepared(struct harness *harness, int index, const struct loaded_cell *loaded) {
    const struct strategy *strategy = backend->candidates[index].strategy;
    struct call call = backend->call(loaded->buffers, &backend->candidates[index], 0, 0);
    if (strategy->prepare == NULL) return NULL;
    int status = strategy->prepare(harness->states[index], &call, harness->reasons[index]);
    return status == 0 ? NULL : harness->reasons[index];
}

// Whether all ranks have the cell and its buffers; else `reason` of the first rank without.
static bool load_cell(struct harness *harness, const struct request *request, struct loaded_cell *loaded,
                      char reason[REASON_SIZE]) {
    struct group *group = harness->group;
    const struct shape *shape = &request->shape;
    snprintf(reason, REASON_SIZE, "out of memory");
    bool opened =
        shape_refusal_of_ranks(shape, group->size) == NULL &&
        cell_open_in(&harness->memory, &loaded->cell, shape, group->rank, group->size, request->seed) == 0;
    if (!group_all_right(group, opened, reason, REASON_SIZE)) return false;
    opened = backend->open_buffers(group, &loaded->cell, request->mode, &loaded->buffers, reason) == 0;
    return group_all_right(group, opened, reason, REASON_SIZE);
}

int back_to_back_measure(struct harness *harness, const struct request *request,
                         const struct back_to_back *how, struct result results[]) {
    struct loaded_cell loaded = {.buffers = NULL};
    char reason[REASON_SIZE];
    int status = 0;
    bool all_opened = load_cell(harness, request, &loaded, reason);
    memset(results, 0, (size_t)candidate_count() * sizeof *results);
    watch_step(PHASE_WARM_UP, "");
    for (int i = 0; i < candidate_count() && status == 0; i++) {
        if (!request->wanted[i]) continue;
        results[i].candidate = &backend->candidates[i];
        struct call call =
            all_opened ? cell_call(&loaded.cell, 0) : (struct call){.dtype = request->shape.dtype};
        results[i].reason = harness_refusal(harness, i, &request->shape, &call);
        if (results[i].reason == NULL && plugins_is_in_place(&backend->candidates[i]))
            results[i].reason = "works only in place, and back-to-back calls have no fresh data for that";
        if (results[i].reason == NULL && !all_opened) {
            snprintf(harness->reasons[i], REASON_SIZE, "%s", reason);
            results[i].reason = harness->reasons[i];
        }
        if (results[i].reason == NULL) results[i].reason = unprepared(harness, i, &loaded);
        if (results[i].reason == NULL) status = measure_candidate(harness, i, &loaded, how, &results[i]);
    }
    watch_rest(PHASE_IDLE);
    if (loaded.buffers != NULL) backend->close_buffers(loaded.buffers);
    cell_close(&loaded.cell);
    return status;
}
