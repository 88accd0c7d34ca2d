// Measures cells; see harness.h.
//
// How a call is timed: all ranks arrive at a barrier, and start at one agreed time if each has a core of its
// own. Each rank notes when it entered and left the call. The time of the call is the longest of any rank;
// the skew is the largest difference of the entries. Nodes have no common clock: ranks of several nodes leave
// the barrier as soon as they can, and have no skew. Consecutive calls have different data. A result that
// passed the full comparison with the reference leaves its hash; the result of a timed call is right if it
// has that hash, or passes the full comparison. If the hashes of all ranks are equal, each rank compares a
// part of the result.
//
// Sampling of a series ends when it is clearly slower than the best, or known precisely enough
// (request.precision). Otherwise it ends with the budget. request.left_us ends it between two rounds, or, if
// calls are long, between two calls.
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/random.h"
#include "ranks/watch.h"
#include "timed_cell.h"

enum {
    BURST_NS = 100000,          // duration of consecutive calls of a series
    WARM_UP_BELOW_NS = 1000000, // longer calls need no untimed call before a burst
    FEWEST_SAMPLES = 3,         // even if they take several budgets
    SLOWER_SAMPLES = 5,         // a series with fewer is neither settled nor the best
    SETTLED_EVERY_ROUND = 8,    // series are settled in each round up to this one, then in rounds that are
                                // powers of two, since sorting takes time
    OVERDRAFT = 4,              // budgets, after which fewer than min_samples suffice
    LONG_CALL_NS = 10000000,    // the time limit is checked between calls longer than this
};

static const char budget_spent[] = "budget spent";

static double to_us(uint64_t ns) {
    return (double)ns / 1000;
}

// Rank 0: collects the times of a burst from all ranks.
static void keep_samples(struct timed_cell *timed, struct timed_series *series, int calls) {
    struct control *control = timed->group->control;
    for (int i = 0; i < calls; i++) {
        uint64_t longest = 0, first = UINT64_MAX, last = 0;
        for (int rank = 0; rank < timed->group->size; rank++) {
            struct stamp stamp = control->of[rank].burst.stamps[i];
            if (stamp.end_ns - stamp.start_ns > longest) longest = stamp.end_ns - stamp.start_ns;
            if (stamp.start_ns < first) first = stamp.start_ns;
            if (stamp.start_ns > last) last = stamp.start_ns;
        }
        series->times_us[series->count + (size_t)i] = to_us(longest);
        series->skews_us[series->count + (size_t)i] = to_us(last - first);
    }
    uint32_t wrong = 0;
    for (int rank = 0; rank < timed->group->size; rank++) {
        wrong |= control->of[rank].burst.wrong_calls;
        if (control->of[rank].burst.varied > 0) series->bits = NO_BITS;
    }
    for (; wrong != 0; wrong &= wrong - 1) series->wrong++;
}

// Some consecutive calls of one series, the first of them untimed if calls are short.
static int burst(struct timed_cell *timed, struct timed_series *series) {
    struct burst_record *record = &timed->group->control->of[timed->group->rank].burst;
    int calls = (int)((double)BURST_NS / (series->estimate_ns + 1));
    size_t left = timed->request->max_samples - series->count;
    calls = calls < 1 ? 1 : calls > MAX_BURST ? MAX_BURST : calls;
    if ((size_t)calls > left) calls = (int)left;
    struct stamp unused;
    uint32_t wrong_calls = 0;
    record->varied = 0;
    timed_cell_step(timed, PHASE_TIMED, series);
    if (series->estimate_ns < (double)WARM_UP_BELOW_NS &&
        timed_cell_call(timed, series, timed_cell_next_data_set(timed), &unused) != 0)
        return -1;
    for (int i = 0; i < calls; i++) {
        size_t data_set = timed_cell_next_data_set(timed);
        if (!series->is_dropped && timed_cell_call(timed, series, data_set, &record->stamps[i]) != 0)
            return -1;
        if (series->is_dropped) { // the same on all ranks
            calls = i;
            break;
        }
        if (!timed_cell_results_are_right(timed, series, data_set)) wrong_calls |= UINT32_C(1) << i;
    }
    record->wrong_calls = wrong_calls;
    if (!group_share(timed->group, &timed->group->control->of[0].burst, sizeof *record)) return -1;
    if (timed->group->rank == 0) keep_samples(timed, series, calls);
    series->count += (size_t)calls;
    return group_node_barrier(timed->group) ? 0 : -1;
}

static void shuffle(int order[], int count, uint32_t *random) {
    for (int i = count - 1; i > 0; i--) {
        int other = (int)(random_32(random) % (uint32_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static bool is_sampled(const struct timed_cell *timed, const struct timed_series *series) {
    return !series->is_dropped && !series->settled && series->count < timed->request->max_samples;
}

// Rank 0: settles series that are clearly slower than the best, or known precisely enough. The probe is
// sampled as long as any series is.
static void settle(struct timed_cell *timed) {
    struct summary summaries[MAX_IN_A_REQUEST + 1];
    double best_high_us = INFINITY;
    for (int i = 1; i < timed->count; i++) {
        struct timed_series *series = &timed->series[i];
        if (series->is_dropped || series->count < SLOWER_SAMPLES) continue;
        summaries[i] = summarise(series->times_us, series->count);
        best_high_us = fmin(best_high_us, summaries[i].high);
    }
    for (int i = 1; i < timed->count; i++) {
        struct timed_series *series = &timed->series[i];
        if (series->is_dropped || series->count < SLOWER_SAMPLES) continue;
        const struct summary *summary = &summaries[i];
        bool is_precise = series->count >= timed->request->min_samples &&
                          summary->high - summary->low <= 2 * timed->request->precision * summary->median;
        series->settled = summary->low > best_high_us || is_precise;
    }
}

// Rank 0 decides whether there is another round.
static bool wants_more(const struct timed_cell *timed, uint64_t since_ns) {
    const struct request *request = timed->request;
    size_t fewest = SIZE_MAX;
    bool anyone = false;
    for (int i = 0; i < timed->count; i++) {
        const struct timed_series *series = &timed->series[i];
        if (!is_sampled(timed, series)) continue;
        if (series->count < fewest) fewest = series->count;
        anyone = anyone || i > 0;
    }
    double elapsed_us = to_us(clock_ns() - since_ns);
    if (!anyone) return false;
    if (request->left_us > 0 && to_us(clock_ns() - timed->since_ns) >= request->left_us) return false;
    if (elapsed_us < request->budget_us) return true;
    return fewest <
           (elapsed_us < (double)OVERDRAFT * request->budget_us ? request->min_samples : FEWEST_SAMPLES);
}

// Rank 0's decision on all ranks: the series that are sampled in this round, one bit each; 0: none.
static bool agree_on_round(struct timed_cell *timed, uint64_t since_ns, size_t round, uint64_t *sampled) {
    *sampled = 0;
    if (timed->group->rank == 0) {
        if (round <= SETTLED_EVERY_ROUND || (round & (round - 1)) == 0) settle(timed);
        bool goes_on = wants_more(timed, since_ns);
        for (int i = 0; goes_on && i < timed->count; i++) {
            if (is_sampled(timed, &timed->series[i])) *sampled |= 1ULL << i;
        }
    }
    return group_agree(timed->group, sampled);
}

static int sample(struct timed_cell *timed) {
    int order[MAX_IN_A_REQUEST + 1];
    uint32_t random = timed->request->seed * 2654435761u | 1;
    uint64_t since_ns = clock_ns(), sampled;
    for (int i = 0; i < timed->count; i++) order[i] = i;
    for (size_t round = 1;; round++) {
        if (!agree_on_round(timed, since_ns, round, &sampled)) return -1;
        if (sampled == 0) return 0;
        shuffle(order, timed->count, &random);
        for (int i = 0; i < timed->count; i++) {
            struct timed_series *series = &timed->series[order[i]];
            if (!(sampled >> order[i] & 1)) continue;
            if (series->estimate_ns > (double)LONG_CALL_NS && timed_cell_check_time(timed) != 0) return -1;
            if (timed->is_late) return 0;
            if (burst(timed, series) != 0) return -1;
        }
    }
}

// ---- one request --------------------------------------------------------------------------------

static void report(struct timed_cell *timed, struct result results[]) {
    struct timed_series *probe = &timed->series[0];
    double copy_us = probe->count > 0 ? median(probe->times_us, probe->count) : 0;
    struct call call = cell_call(&timed->cell, 0);
    double any_us = fmax(copy_us, harness_latency_us(timed->harness));
    for (int i = 1; i < timed->count; i++) {
        struct timed_series *series = &timed->series[i];
        long index = series->candidate - backend->candidates;
        struct result *result = &results[index];
        *result =
            (struct result){.candidate = series->candidate, .bits = series->bits, .wrong = series->wrong};
        if (series->wrong > 0) {
            snprintf(series->reason, sizeof series->reason, "wrong result in %zu of %zu timed calls",
                     series->wrong, series->count);
        }
        if (series->reason[0] != '\0') {
            snprintf(timed->harness->reasons[index], REASON_SIZE, "%s", series->reason);
            result->reason = timed->harness->reasons[index];
            continue;
        }
        result->time_us = summarise(series->times_us, series->count);
        figures_of(
            &(struct measurement){.time_us = result->time_us,
                                  .times_us = series->times_us,
                                  .skews_us = harness_has_skews(timed->group) ? series->skews_us : NULL,
                                  .bound_us =
                                      fmax(any_us, backend->link_us(timed->group, series->candidate, &call)),
                                  .floor_us = series->floor_us,
                                  .calls = backend->slots(timed->buffers)},
            result->figures);
    }
}

// Samples only if there was time to admit all series: some of them alone do not show the best candidate.
static int measure_cell(struct timed_cell *timed) {
    for (int i = 0; i < timed->count; i++) {
        if (timed_cell_check_time(timed) != 0) return -1;
        if (timed->is_late) break;
        if (!timed->series[i].is_dropped && timed_cell_admit(timed, &timed->series[i]) != 0) return -1;
    }
    if (!timed->is_late && sample(timed) != 0) return -1;
    for (int i = 1; i < timed->count; i++) {
        if (timed->series[i].count == 0) timed_cell_drop(&timed->series[i], budget_spent);
    }
    return 0;
}

int harness_measure(struct harness *harness, const struct request *request, struct result results[]) {
    struct timed_cell timed = {.harness = harness,
                               .group = harness->group,
                               .request = request,
                               .memory = &harness->memory,
                               .since_ns = clock_ns()};
    struct group *group = harness->group;
    memset(results, 0, (size_t)candidate_count() * sizeof *results);
    watch_step(PHASE_WARM_UP, "");
    harness->at_work = "";
    int status = 0;
    if (timed_cell_open(&timed)) status = measure_cell(&timed);
    if (status == 0 && group->rank == 0) report(&timed, results);
    if (status == 0) harness->at_work = "";
    // If ranks share cores, a round trip measures the scheduler, and takes long.
    if (status == 0 && !group->oversubscribed) status = backend->round_trip(group, &harness->roundtrip_us);
    watch_rest(PHASE_IDLE);
    timed_cell_close(&timed);
    return status;
}
