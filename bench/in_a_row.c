// Calls in a row; see in_a_row.h. A call may begin on one rank while another is still in the one before, so
// that what overlaps counts as it does in a program that does nothing else.
#include "in_a_row.h"

#include <stdio.h>
#include <string.h>

enum { CALLS_PER_DEADLINE = 256, FEWEST_CALLS = 3 };

static char reasons[MAX_CANDIDATES][REASON_SIZE];

// `count` calls, from data set `first` on. -1: a peer is gone or hangs.
static int call_often(struct harness *harness, int index, const struct cell *cell, size_t first,
                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct call call = cell_call(cell, (first + i) % cell->shifts);
        if (i % CALLS_PER_DEADLINE == 0) watch_step(PHASE_TIMED, host_candidates[index].name);
        if (host_candidates[index].strategy->run(harness->states[index], &call) != 0) return -1;
    }
    return 0;
}

// On how many ranks the result of data set `shift` is wrong.
static size_t wrong_ranks(const struct group *group, const struct candidate *candidate,
                          const struct cell *cell, size_t shift) {
    char what[REASON_SIZE];
    int wrong = !cell_check(cell, shift, candidate->accumulates_fp32, what, sizeof what), all;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, group->comm);
    return (size_t)all;
}

// How many calls fit into the budget, on all ranks alike; one is taken to see how long it takes.
static int fitting_calls(struct harness *harness, int index, const struct cell *cell,
                         const struct in_a_row *how, uint32_t *count) {
    *count = how->iterations;
    if (how->budget_us <= 0) return 0;
    uint64_t start_ns = clock_ns();
    if (call_often(harness, index, cell, 0, 1) != 0) return -1;
    double mine_us = (double)(clock_ns() - start_ns) / 1000, time_us;
    MPI_Allreduce(&mine_us, &time_us, 1, MPI_DOUBLE, MPI_MAX, harness->group->comm);
    double fit = how->budget_us / (time_us + 0.01);
    if (fit < how->iterations) *count = fit < FEWEST_CALLS ? FEWEST_CALLS : (uint32_t)fit;
    return 0;
}

// The time of the slowest rank per call, in microseconds.
static int time_calls(struct harness *harness, int index, const struct cell *cell, const struct in_a_row *how,
                      struct summary *summary) {
    uint32_t count;
    if (call_often(harness, index, cell, 0, how->warm_up) != 0) return -1;
    if (fitting_calls(harness, index, cell, how, &count) != 0) return -1;
    if (!group_barrier(harness->group)) return -1;
    uint64_t start_ns = clock_ns();
    if (call_often(harness, index, cell, 0, count) != 0) return -1;
    double mine_us = (double)(clock_ns() - start_ns) / 1000 / count;
    summary->samples = count;
    MPI_Allreduce(&mine_us, &summary->median, 1, MPI_DOUBLE, MPI_MAX, harness->group->comm);
    return 0;
}

static int measure_candidate(struct harness *harness, int index, struct cell *cell,
                             const struct in_a_row *how, struct result *result) {
    const struct candidate *candidate = &host_candidates[index];
    struct group *group = harness->group;
    cell_poison(cell);
    if (how->check) {
        if (call_often(harness, index, cell, 0, 1) != 0) return -1;
        result->wrong = wrong_ranks(group, candidate, cell, 0);
    }
    if (result->wrong == 0 && time_calls(harness, index, cell, how, &result->time_us) != 0) return -1;
    if (how->check && result->wrong == 0) {
        result->wrong = wrong_ranks(group, candidate, cell, (result->time_us.samples - 1) % cell->shifts);
    }
    if (result->wrong > 0) {
        snprintf(reasons[index], REASON_SIZE, "wrong result on %zu of %d ranks", result->wrong, group->size);
        result->reason = reasons[index];
    }
    return 0;
}

int in_a_row_measure(struct harness *harness, const struct request *request, const struct in_a_row *how,
                     struct result results[]) {
    struct group *group = harness->group;
    struct cell cell = {.shifts = 0};
    int opened = shape_refusal_of_ranks(&request->shape, group->size) == NULL &&
                 cell_open(&cell, &request->shape, group->rank, group->size, request->seed) == 0;
    int all_opened, status = 0;
    memset(results, 0, (size_t)host_candidate_count * sizeof *results);
    watch_step(PHASE_WARM_UP, "");
    MPI_Allreduce(&opened, &all_opened, 1, MPI_INT, MPI_MIN, group->comm);
    for (int i = 0; i < host_candidate_count && status == 0; i++) {
        if (!request->wanted[i]) continue;
        results[i].candidate = &host_candidates[i];
        struct call call = all_opened ? cell_call(&cell, 0) : (struct call){.dtype = request->shape.dtype};
        results[i].reason = harness_refusal(harness, i, &request->shape, &call);
        if (results[i].reason == NULL && !all_opened) results[i].reason = "out of memory";
        if (results[i].reason == NULL) status = measure_candidate(harness, i, &cell, how, &results[i]);
    }
    watch_rest();
    cell_close(&cell);
    return status;
}
